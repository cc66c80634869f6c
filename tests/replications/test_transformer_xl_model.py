"""What Transformer-XL and its rivals must do whatever their sizes are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decoding.protocol import Reach
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
