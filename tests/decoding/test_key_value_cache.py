"""The cache that never moves against one that copies: lists of what every beam's ancestors wrote."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decoding.key_value_cache import KeyValueCache

N, H, K, V = 2, 2, 3, 1


def cache(batch, capacity, dtype=torch.float32):
    sizes = {"layers": N, "batch": batch, "heads": H, "key_size": K, "value_size": V}
    return KeyValueCache(**sizes, like=torch.empty(0, dtype=dtype), capacity=capacity)


class Twin:
    """``beams[b][j]`` lists what beam j of source b has seen: at each step every layer's keys and values."""

    def __init__(self, batch):
        self.beams = [[[]] for _ in range(batch)]

    def write(self, keys, values):
        """(N, B, H, k, K) and (N, B, H, k, V)."""
        for b, beams in enumerate(self.beams):
            self.beams[b] = [[*seen, (keys[:, b, :, j], values[:, b, :, j])] for j, seen in enumerate(beams)]

    def reorder(self, sources, beams):
        kept = self.beams if sources is None else [self.beams[b] for b in sources]
        self.beams = [[old[j] for j in chosen] for old, chosen in zip(kept, beams, strict=True)]


def step(real, twin, beams):
    """Let every beam write something new, and compare what each of them then sees."""
    batch = len(twin.beams)
    k, v = torch.randn(N, batch, H, beams, K), torch.randn(N, batch, H, beams, V)
    real.open(beams)
    twin.write(k, v)
    for n in range(N):
        keys, values = real.write(n, k[n], v[n])
        mask = real.mask
        seen = torch.ones(batch, 1, beams, real.used, dtype=torch.bool) if mask is None else mask
        assert keys.shape == (batch, H, real.used, K)
        assert values.shape == (batch, H, real.used, V)
        assert seen.shape == (batch, 1, beams, real.used)
        for b, rows in enumerate(twin.beams):
            for j, row in enumerate(rows):
                slots = seen[b, 0, j]
                assert torch.equal(keys[b][:, slots], torch.stack([pair[0][n] for pair in row], dim=1))
                assert torch.equal(values[b][:, slots], torch.stack([pair[1][n] for pair in row], dim=1))


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_every_beam_sees_exactly_what_its_ancestors_wrote(data):
    batch, beams = data.draw(st.integers(1, 4), "sources"), 1
    real = cache(batch, data.draw(st.integers(1, 8), "capacity"))
    twin = Twin(batch)
    for _ in range(data.draw(st.integers(1, 7), "steps")):
        step(real, twin, beams)
        count = len(twin.beams)
        stay = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1), "sources that stay"))
        width = data.draw(st.integers(1, 5), "beams")
        parents = st.lists(st.integers(0, beams - 1), min_size=width, max_size=width)
        chosen = [data.draw(parents, "parents") for _ in stay]
        all_stay = len(stay) == count and data.draw(st.booleans(), "unsaid")
        real.reorder(None if all_stay else torch.tensor(stay), torch.tensor(chosen))
        twin.reorder(None if all_stay else stay, chosen)
        beams = width


def test_slots_double_when_they_are_full():
    real, twin = cache(2, capacity=4), Twin(2)
    for used, capacity, parents in ((1, 4, [0, 0, 0]), (4, 4, [1, 2, 0]), (7, 8, [2, 1, 0]), (10, 16, [0, 1, 2])):
        step(real, twin, min(used, 3))
        assert (real.used, real.keys.size(3), real.values.size(3)) == (used, capacity, capacity)
        real.reorder(None, torch.tensor([parents, parents[::-1]]))
        twin.reorder(None, [parents, parents[::-1]])


def test_slots_that_no_beam_sees_are_used_again():
    """Of the beams at a step one has descendants, another one for each source."""
    real, twin = cache(2, capacity=8), Twin(2)
    step(real, twin, 1)
    for t in range(90):
        parents = [[t % 3 if t else 0] * 3, [(t + 1) % 3 if t else 0] * 3]
        real.reorder(None, torch.tensor(parents))
        twin.reorder(None, parents)
        step(real, twin, 3)
    assert real.used < 91 + 3 + 64 < 1 + 90 * 3
    assert real.keys.size(3) < 2 * (91 + 3 + 64)


def test_more_beams_than_twice_the_slots_find_room():
    real, twin = cache(1, capacity=2), Twin(1)
    step(real, twin, 1)
    real.reorder(None, torch.zeros(1, 9, dtype=torch.long))
    twin.reorder(None, [[0] * 9])
    step(real, twin, 9)
    assert real.used == 10


def test_one_beam_needs_no_mask():
    real = cache(2, capacity=4)
    for _ in range(6):
        real.open(1)
        assert real.mask is None
        real.reorder(None, torch.zeros(2, 1, dtype=torch.long))
    real.reorder(None, torch.zeros(2, 3, dtype=torch.long))
    assert real.mask.shape == (2, 1, 3, 6)
    assert real.mask.all()


def test_neither_steps_nor_changes_of_place_move_what_is_stored():
    real, twin = cache(3, capacity=16), Twin(3)
    step(real, twin, 1)
    where = real.keys.data_ptr(), real.values.data_ptr()
    for sources in (None, [0, 2], [1]):
        beams = [[0, 0]] * len(twin.beams if sources is None else sources)
        real.reorder(None if sources is None else torch.tensor(sources), torch.tensor(beams))
        twin.reorder(sources, beams)
        step(real, twin, 2)
        assert (real.keys.data_ptr(), real.values.data_ptr()) == where


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_it_is_of_the_type_that_it_is_told(dtype):
    real = cache(1, capacity=1, dtype=dtype)
    real.open(2)
    assert (real.keys.dtype, real.values.dtype) == (dtype, dtype)
