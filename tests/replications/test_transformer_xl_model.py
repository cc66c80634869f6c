"""What Transformer-XL and its rivals must do whatever their sizes are; memory against lists of all that was read."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.transformer_xl.memory import KeyValueMemory, StateMemory
from shared.decoding.protocol import Reach
from tests.refused import assert_refused
from tests.replications import small_transformer_xl as xl

EXACT = {"atol": 1e-10, "rtol": 0}
SYMBOLS = 12
kinds = pytest.mark.parametrize("kind", xl.KINDS)
transformers = pytest.mark.parametrize("kind", xl.TRANSFORMERS)
modes = pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
many = settings(max_examples=12)
lengths = st.integers(1, SYMBOLS)
seeds = st.integers(0, 2**31)


def close(found, expected):
    torch.testing.assert_close(found, expected, **EXACT)


# Segments and one pass


@transformers
@modes
@many
@given(
    length=lengths, memory=st.integers(0, SYMBOLS), same_length=st.booleans(),
    clamp=st.none() | st.integers(1, 8), seed=seeds,
)  # fmt: skip
def test_segments_are_one_pass_that_sees_what_is_in_memory(kind, training, length, memory, same_length, clamp, seed):
    """The twin has no memory: it knows from the places alone what a query may see, and at which distances."""
    torch.manual_seed(seed)
    model, text = xl.small(kind).train(training), xl.a_text(SYMBOLS)
    reach = Reach(memory, same_length and memory > 0, clamp)
    with torch.set_grad_enabled(training):
        found = xl.in_segments(model, *text, length, reach)
    close(found, xl.in_one_pass(model, *text, length, reach))


# Memory


@kinds
def test_gradients_are_those_with_the_memory_for_a_constant(kind):
    model, (inputs, targets) = xl.small(kind).train(), xl.a_text(8)
    first, second = ((inputs[:, part], targets[:, part]) for part in (slice(0, 4), slice(4, 8)))
    memory, loaded = model.memory(2, Reach(8)), model.memory(2, Reach(8))
    model(*first, memory)
    loaded.load_state_dict({name: part.detach().clone() for name, part in memory.state_dict().items()})
    weights = list(model.parameters())
    found, expected = (torch.autograd.grad(model(*second, held).sum(), weights) for held in (memory, loaded))
    close(found, expected)
    through = torch.autograd.grad(model(inputs, targets)[:, 4:].sum(), weights)
    assert not all(torch.allclose(a, b) for a, b in zip(found, through, strict=True))


@kinds
@modes
def test_a_saved_memory_goes_on_where_it_was(kind, training):
    model, (inputs, targets) = xl.small(kind).train(training), xl.a_text(SYMBOLS)
    memory, again = model.memory(2, Reach(5)), model.memory(2, Reach(5))
    again.load_state_dict(memory.state_dict())  # nothing is held yet
    xl.in_segments(model, inputs[:, :7], targets[:, :7], 3, memory=memory)
    again.load_state_dict(memory.state_dict())
    rest = inputs[:, 7:], targets[:, 7:]
    expected = xl.in_segments(model, *rest, 3, memory=memory)
    assert torch.equal(xl.in_segments(model, *rest, 3, memory=again), expected)


# Probabilities


@kinds
def test_dropout_is_for_training(kind):
    model, text = xl.small(kind, dropout=0.3), xl.a_text(SYMBOLS)
    assert torch.equal(model(*text), model(*text))
    model.train()
    assert not torch.isclose(model(*text), model(*text)).any()


def test_dropout_of_attention_is_for_training():
    model, text = xl.small(dropatt=0.3), xl.a_text(SYMBOLS)
    expected = xl.small().train()
    expected.load_state_dict(model.state_dict())
    assert torch.equal(model(*text), model(*text))
    assert not torch.isclose(model.train()(*text), expected(*text)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@kinds
@modes
def test_a_gpu_computes_the_same(kind, training):
    model, (inputs, targets) = xl.small(kind).train(training), xl.a_text(90)
    reach, found = Reach(20, same_length=True, clamp=15), []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        first, second = ((x.to(device) for x in (inputs, targets)) for _ in range(2))
        memory = model.memory(2, reach)
        with torch.set_grad_enabled(training):
            xl.in_segments(model, *first, 17, memory=memory)
            state = {name: part.cpu() for name, part in memory.state_dict().items()}
            memory.clear()
            memory.load_state_dict(state)
            nats = xl.in_segments(model, *second, 17, memory=memory)
        found.append(nats.detach().cpu())
    torch.testing.assert_close(found[1], found[0], atol=1e-9, rtol=1e-9)


# Sizes


@transformers
def test_weights_begin_as_in_the_released_code(kind):
    model = xl.built(kind, d_model=64, n_layer=3, n_head=4, d_head=32, d_inner=96)
    for name, parameter in model.layers.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.35)
            around = 1 if "norm" in name else 0
            assert parameter.mean().item() == pytest.approx(around, abs=0.02)


N, B, D, H, K = 2, 3, 4, 2, 3
HELD = ["states", "keys and values"]
both_kinds = pytest.mark.parametrize("kind", HELD)
many_steps = settings(max_examples=40)


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


@both_kinds
@many_steps
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


@both_kinds
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


@both_kinds
@pytest.mark.parametrize("changes", [{"layers": 1}, {"columns": 2}, {"width": 5}, {"length": 9}])
def test_what_another_model_held_is_refused(kind, changes):
    held, other = memory(kind, 4), memory(kind, **{"length": 4} | changes)
    *outer, _, width = other.state_dict()["held"].shape
    assert_refused(r"does not fit the", held.load_state_dict, {"held": torch.zeros(*outer, other.reach.memory, width)})


def falling(keys):
    """Distances themselves, S - 1 … 0, as (H, S, K)."""
    return torch.arange(keys - 1, -1, -1).view(1, keys, 1).expand(H, keys, K)


@both_kinds
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
