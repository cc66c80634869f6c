"""The cache that never moves against one that copies: lists of what every beam's ancestors wrote."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decoding import key_value_cache
from shared.decoding.key_value_cache import KeyValueCache

N, H, K, V = 2, 2, 3, 1


class Twin:
    """``beams[b][j]`` lists what beam j of source b has seen: each step's place, and all layers' keys and values."""

    def __init__(self, batch):
        self.t, self.beams = 0, [[[]] for _ in range(batch)]

    def write(self, keys, values):
        """(N, B, H, k, K) and (N, B, H, k, V)."""
        for b, beams in enumerate(self.beams):
            new = [(self.t, keys[:, b, :, j], values[:, b, :, j]) for j in range(len(beams))]
            self.beams[b] = [[*seen, own] for seen, own in zip(beams, new, strict=True)]
        self.t += 1

    def reorder(self, sources, beams):
        kept = self.beams if sources is None else [self.beams[b] for b in sources]
        self.beams = [[old[j] for j in chosen] for old, chosen in zip(kept, beams, strict=True)]


def step(real, twin, beams, dtype=torch.float32):
    """Let every beam write something new, and compare what each of them then sees."""
    batch = len(twin.beams)
    k, v = torch.randn(N, batch, H, beams, K, dtype=dtype), torch.randn(N, batch, H, beams, V, dtype=dtype)
    real.open(beams, twin.t)
    twin.write(k, v)
    for n in range(N):
        keys, values = real.write(n, k[n], v[n])
        assert keys.shape == (batch, H, real.used, K)
        assert values.shape == (batch, H, real.used, V)
        assert keys.dtype == values.dtype == dtype
        seen = torch.ones(batch, 1, beams, real.used, dtype=torch.bool) if real.mask is None else real.mask
        assert seen.shape == (batch, 1, beams, real.used)
        for b, rows in enumerate(twin.beams):
            for j, row in enumerate(rows):
                slots = seen[b, 0, j]
                order = real.places[b, slots].argsort()  # the order of slots means nothing
                assert real.places[b, slots][order].tolist() == [place for place, _, _ in row]
                assert torch.equal(keys[b][:, slots][:, order], torch.stack([pair[1][n] for pair in row], dim=1))
                assert torch.equal(values[b][:, slots][:, order], torch.stack([pair[2][n] for pair in row], dim=1))


@settings(max_examples=100)
@given(data=st.data())
def test_every_beam_sees_exactly_what_its_ancestors_wrote(data):
    batch, beams = data.draw(st.integers(1, 4), "sources"), 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_value_cache, "SLOTS", data.draw(st.integers(1, 8), "slots"))
        real, twin = KeyValueCache(batch, torch.device("cpu")), Twin(batch)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_slots_that_no_beam_sees_are_used_again(dtype):
    """Of the beams at a step one has descendants, another one for each source."""
    real, twin = KeyValueCache(2, torch.device("cpu")), Twin(2)
    step(real, twin, 1, dtype)
    for t in range(90):
        parents = [[t % 3 if t else 0] * 3, [(t + 1) % 3 if t else 0] * 3]
        real.reorder(None, torch.tensor(parents))
        twin.reorder(None, parents)
        step(real, twin, 3, dtype)
    assert real.used < 91 + 3 + 64 < 1 + 90 * 3


def test_one_beam_needs_no_mask():
    real = KeyValueCache(2, torch.device("cpu"))
    for t in range(6):
        real.open(1, t)
        assert real.mask is None
        real.reorder(None, torch.zeros(2, 1, dtype=torch.long))
    real.reorder(None, torch.zeros(2, 3, dtype=torch.long))
    assert real.mask.shape == (2, 1, 3, 6)
    assert real.mask.all()
