"""What Transformer-XL and its rivals must do whatever their sizes are."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decoding.protocol import Reach
from shared.tasks.language.streams import Stream
from tests.processor import skip_without_bfloat16_lstm
from tests.replications.small_transformer_xl import (
    BY_DISTANCE,
    F64,
    KINDS,
    TRANSFORMERS,
    VOCABULARY,
    N,
    a_text,
    in_one_pass,
    in_segments,
    small,
)

EXACT = {"atol": 1e-10, "rtol": 0}
SYMBOLS = 12
kinds = pytest.mark.parametrize("kind", KINDS)
transformers = pytest.mark.parametrize("kind", TRANSFORMERS)
by_distance = pytest.mark.parametrize("kind", BY_DISTANCE)
modes = pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
many = settings(deadline=None, max_examples=12)
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
    model, text = small(kind).train(training), a_text(SYMBOLS)
    reach = Reach(memory, same_length and memory > 0, clamp)
    with torch.set_grad_enabled(training):
        found = in_segments(model, *text, length, reach)
    close(found, in_one_pass(model, *text, length, reach))


@kinds
@modes
@many
@given(length=lengths, seed=seeds)
def test_with_enough_memory_segments_are_one_long_pass(kind, training, length, seed):
    torch.manual_seed(seed)
    model, text = small(kind).train(training), a_text(SYMBOLS)
    expected = model(*text)
    found = in_segments(model, *text, length, Reach(SYMBOLS))
    if kind == "absolute" and length < SYMBOLS:  # it mistakes what it remembers for what it reads
        close(found[:, :length], expected[:, :length])
        assert not torch.allclose(found, expected)
    else:
        close(found, expected)


@kinds
def test_without_memory_nothing_of_other_segments_is_seen(kind):
    model, (inputs, targets) = small(kind), a_text(SYMBOLS)
    found = in_segments(model, inputs, targets, 4, Reach(0))
    for part in range(0, SYMBOLS, 4):
        alone = slice(part, part + 4)
        close(found[:, alone], model(inputs[:, alone], targets[:, alone]))


@by_distance
@many
@given(length=lengths, memory=st.integers(1, 5), columns=st.integers(1, 5), seed=seeds)
def test_perplexity_depends_on_neither_segments_nor_columns_once_what_is_read_covers_what_is_seen(
    kind, length, memory, columns, seed
):
    torch.manual_seed(seed)
    model = small(kind)
    stream = Stream(np.random.default_rng(seed).integers(4, VOCABULARY, 31, dtype=np.uint8))

    def nats(columns, length):
        held = model.memory(columns, Reach(memory, same_length=True))
        scored = torch.full((31,), torch.nan, dtype=F64)
        # A state at a layer has seen memory - 1 positions more than one of the layer below.
        for batch in stream.evaluation_batches(columns=columns, length=length, warm_up=N * (memory - 1)):
            scored[batch.places[batch.mask]] = model(batch.inputs, batch.targets, held)[batch.mask]
        return scored

    close(nats(columns, length), nats(1, 31))


# What is seen


@transformers
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("same_length", [True, False])
def test_how_far_back_a_symbol_reaches(kind, layers, same_length):
    """With one length as far as N (M - 1), wherever segments begin; otherwise it depends on the segment as well."""
    length, memory = 3, 4
    model, (inputs, targets) = small(kind, layers=layers), a_text(15, 1)
    other = inputs.clone()
    other[:, 0] = (inputs[:, 0] + 1) % VOCABULARY
    reach = Reach(memory, same_length=same_length)
    before, after = (in_segments(model, x, targets, length, reach)[0] for x in (inputs, other))
    reached = (~torch.isclose(before, after, **EXACT)).nonzero().flatten().tolist()
    last = 0
    for _ in range(layers):
        segment = (last + memory) // length * length  # the last that has it in memory, as a whole
        last = last + memory - 1 if same_length else segment + length - 1
    assert reached == list(range(last + 1))


def test_distances_from_clamp_on_are_one():
    model, text = small(), a_text(SYMBOLS)
    found = {clamp: in_segments(model, *text, 4, Reach(8, clamp=clamp)) for clamp in (None, 1, 6, SYMBOLS - 1, 100)}
    close(found[100], found[None])
    close(found[SYMBOLS - 1], found[None])
    assert (found[6] == found[None]).all(0).tolist() == [True] * 7 + [False] * 5
    assert (found[1] == found[None]).all(0).tolist() == [True] * 2 + [False] * 10


def test_shaws_distances_are_their_own():
    model, text = small("shaw"), a_text(SYMBOLS)
    found, expected = (in_segments(model, *text, 4, Reach(8, clamp=clamp)) for clamp in (1, None))
    assert torch.equal(found, expected)


def test_absolute_positions_begin_anew_with_every_segment_and_what_is_remembered_keeps_its_own():
    """So the last symbol of a segment that is read twice weighs all as if it had been read once."""
    model, (inputs, targets) = small("absolute", layers=1), a_text(8, 1)
    period = inputs[:, :4]
    twice = torch.cat((period, period), dim=1)
    nats = in_segments(model, twice, targets, 4, Reach(4))
    alone = model(period, targets[:, 4:])
    close(nats[:, -1], alone[:, -1])
    relative = small("relative", layers=1)
    nats, alone = in_segments(relative, twice, targets, 4, Reach(4)), relative(period, targets[:, 4:])
    assert not torch.isclose(nats[:, -1], alone[:, -1])


# Columns


# Memory


@kinds
def test_no_gradient_flows_into_memory_but_through_all_of_the_segment(kind):
    model, (inputs, targets) = small(kind).train(), a_text(8)
    embedded = []
    model.softmax.embedding.register_forward_hook(lambda *call: embedded.append(call[-1]) or call[-1].retain_grad())
    memory = model.memory(2, Reach(8))
    for part in (slice(0, 4), slice(4, 8)):
        nats = model(inputs[:, part], targets[:, part], memory)
    nats[:, -1].sum().backward()
    before, within = embedded
    assert before.grad is None
    assert (within.grad != 0).any(-1).all()


@kinds
def test_gradients_are_those_with_the_memory_for_a_constant(kind):
    model, (inputs, targets) = small(kind).train(), a_text(8)
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
    model, (inputs, targets) = small(kind).train(training), a_text(SYMBOLS)
    memory, again = model.memory(2, Reach(5)), model.memory(2, Reach(5))
    again.load_state_dict(memory.state_dict())  # nothing is held yet
    in_segments(model, inputs[:, :7], targets[:, :7], 3, memory=memory)
    again.load_state_dict(memory.state_dict())
    rest = inputs[:, 7:], targets[:, 7:]
    expected = in_segments(model, *rest, 3, memory=memory)
    assert torch.equal(in_segments(model, *rest, 3, memory=again), expected)


# Probabilities


@kinds
def test_dropout_is_for_training(kind):
    model, text = small(kind, dropout=0.3), a_text(SYMBOLS)
    assert torch.equal(model(*text), model(*text))
    model.train()
    assert not torch.isclose(model(*text), model(*text)).any()


def test_dropout_of_attention_is_for_training():
    model, text = small(attention_dropout=0.3), a_text(SYMBOLS)
    expected = small().train()
    expected.load_state_dict(model.state_dict())
    assert torch.equal(model(*text), model(*text))
    assert not torch.isclose(model.train()(*text), expected(*text)).all()


@kinds
@modes
def test_nats_are_in_full_precision_whatever_is_computed_in(kind, training):
    if kind == "lstm":
        skip_without_bfloat16_lstm()
    model, text = small(kind).float().train(training), a_text(SYMBOLS)
    reach = Reach(5, same_length=True)
    with torch.set_grad_enabled(training):
        expected = in_segments(model, *text, 4, reach)
        with torch.autocast("cpu", torch.bfloat16):
            found = in_segments(model, *text, 4, reach)
    assert found.dtype == expected.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.5, rtol=0.1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@kinds
@modes
def test_a_gpu_computes_the_same(kind, training):
    model, (inputs, targets) = small(kind).train(training), a_text(90)
    reach, found = Reach(20, same_length=True, clamp=15), []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        first, second = ((x.to(device) for x in (inputs, targets)) for _ in range(2))
        memory = model.memory(2, reach)
        with torch.set_grad_enabled(training):
            in_segments(model, *first, 17, memory=memory)
            state = {name: part.cpu() for name, part in memory.state_dict().items()}
            memory.clear()
            memory.load_state_dict(state)
            nats = in_segments(model, *second, 17, memory=memory)
        found.append(nats.detach().cpu())
    torch.testing.assert_close(found[1], found[0], atol=1e-9, rtol=1e-9)
