"""The memory in one buffer against lists of all that was read."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.transformer_xl.memory import KeyValueMemory, StateMemory
from shared.decoding.protocol import Reach
from tests.refused import assert_refused

N, B, D, H, K = 2, 3, 4, 2, 3
KINDS = ["states", "keys and values"]
kinds = pytest.mark.parametrize("kind", KINDS)
many = settings(max_examples=40)


def memory(kind, length, *, layers=N, columns=B, width=K, dtype=torch.float64):
    reach, like = Reach(length), torch.empty(0, dtype=dtype)
    if kind == "states":
        return StateMemory(reach, layers=layers, columns=columns, width=width + 1, like=like)
    return KeyValueMemory(reach, layers=layers, columns=columns, heads=H, key_size=width, like=like)


def projections(dtype=torch.float64):
    """A layer's keys and values (B, H, S, K) of its inputs (B, S, D), for each of N layers."""
    weights = torch.randn(N, D, 2 * H * K, dtype=dtype)
    return [lambda x, w=w: tuple((x @ w).unflatten(-1, (2, H, K)).permute(2, 0, 3, 1, 4)) for w in weights.unbind()]


def read(held, project, segment):
    """Contexts of all layers for their inputs (N, B, T, D), as they are before the next segment."""
    contexts = [held.context(n, segment[n], project[n]) for n in range(N)]
    held.advance(segment.size(2))
    return contexts


def segment(symbols, dtype=torch.float64):
    return torch.randn(N, B, symbols, D, dtype=dtype)


def agree(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@kinds
@many
@given(length=st.integers(0, 7), steps=st.lists(st.integers(0, 5), max_size=12))
def test_a_context_is_what_was_last_read_and_the_segment(kind, length, steps):
    """A step of 0 symbols is a text's end."""
    held, project = memory(kind, length), projections()
    past = segment(0)
    for symbols in steps:
        if not symbols:
            held.clear()
            past = segment(0)
            assert len(held) == 0
            continue
        new = segment(symbols)
        past = torch.cat((past, new), dim=2)
        for n, context in enumerate(read(held, project, new)):
            agree(context, project[n](past[n][:, -length - symbols :]))
        assert len(held) == min(length, past.size(2))


def test_keys_and_values_are_written_once_and_read_where_they_lie():
    held, project = memory("keys and values", 6), projections()
    (k, v), *_ = read(held, project, segment(4))
    before = k.untyped_storage().data_ptr()
    for symbols in (4, 1, 3, 4, 4, 2, 4) * 3:
        ((k, v), _) = read(held, project, segment(symbols))
        assert k.untyped_storage().data_ptr() == v.untyped_storage().data_ptr() == before
        assert k.stride()[-2:] == v.stride()[-2:] == (K, 1)


def test_states_that_are_kept_do_not_change_with_what_they_were_made_from():
    """A loss of the segment before may still be waiting for its gradients."""
    held, project = memory("states", 2), projections()
    first = segment(3).requires_grad_()
    ((k, _), _) = read(held, project, first)
    for _ in range(5):
        read(held, project, segment(3))
    k.square().sum().backward()
    assert first.grad[0].isfinite().all()


@kinds
@pytest.mark.parametrize("read_before", [0, 1, 9])
def test_what_is_held_can_be_saved_and_goes_on_elsewhere(kind, read_before):
    project = projections()
    held, other = memory(kind, 4), memory(kind, 4)
    read(other, project, segment(3))
    for _ in range(read_before):
        read(held, project, segment(2))
    state = held.state_dict()
    saved = {name: part.clone() for name, part in state.items()}
    following = [segment(3) for _ in range(5)]
    other.load_state_dict(state)
    assert len(other) == min(4, 2 * read_before)
    for new in following:
        agree(read(other, project, new), read(held, project, new))
    agree(state, saved)  # a copy, which what follows does not change


@kinds
@pytest.mark.parametrize("changes", [{"layers": 1}, {"columns": 2}, {"width": 5}, {"length": 9}])
def test_what_another_model_held_is_refused(kind, changes):
    held, other = memory(kind, 4), memory(kind, **{"length": 4} | changes)
    *outer, _, width = other.state_dict()["held"].shape
    assert_refused(r"does not fit the", held.load_state_dict, {"held": torch.zeros(*outer, other.reach.memory, width)})


def falling(keys):
    """Distances themselves, S - 1 … 0, as (H, S, K)."""
    return torch.arange(keys - 1, -1, -1).view(1, keys, 1).expand(H, keys, K)


@kinds
def test_distances_run_down_to_zero_and_are_projected_anew_only_where_weights_learn(kind):
    held, project, asked = memory(kind, 3), projections(), []

    def of_layer(n):
        return lambda keys: asked.append(n) or falling(keys) + 100 * n

    for symbols in (2, 4, 1, 9, 4):
        keys = len(held) + symbols
        for n in range(N):
            held.context(n, segment(symbols)[n], project[n])
            assert torch.equal(held.distances(n, keys, of_layer(n)), falling(keys) + 100 * n)
        held.advance(symbols)
    assert len(asked) == (5 * N if kind == "states" else 2 * N)  # the buffer grew once
    held.clear()
    assert torch.equal(held.distances(0, 9, of_layer(0)), falling(9))


def test_what_is_held_has_one_type_and_contexts_that_of_the_segment():
    held = memory("states", 3, dtype=torch.float32)
    for _ in range(2):
        ((k, _), *_) = read(held, projections(torch.bfloat16), segment(2, torch.bfloat16))
        assert k.dtype == torch.bfloat16
        assert held.state_dict()["held"].dtype == torch.float32
