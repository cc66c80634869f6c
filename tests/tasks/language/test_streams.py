"""Streams: columns of a text that are read on from batch to batch."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.tokenizers import EOS, PAD
from shared.tasks.language.corpus import Stream

sizes = st.integers(1, 60)
columns = st.integers(1, 9)
lengths = st.integers(1, 12)


def stream_of(size):
    """No two symbols are the same, so that each tells its place."""
    return Stream(np.arange(10, 10 + size, dtype=np.uint16))


def scored(batches):
    """Place to the symbol that is the target there, over all batches; no place may come twice."""
    found = {}
    for batch in batches:
        assert torch.equal(batch.mask, batch.targets != PAD)
        places, targets = (part[batch.mask].tolist() for part in (batch.places, batch.targets))
        for place, target in zip(places, targets, strict=True):
            assert place not in found
            found[place] = target
    return found


def whole(stream):
    return dict(enumerate(stream.symbols.tolist()))


@given(sizes, columns, lengths, st.integers(0, 70))
def test_evaluation_scores_every_symbol_once_and_columns_are_parts_of_the_stream(size, columns, length, warm_up):
    stream = stream_of(size)
    batches = list(stream.evaluation_batches(columns=columns, length=length, warm_up=warm_up))
    assert scored(batches) == whole(stream)
    assert sum(batch.tokens for batch in batches) == size
    assert [batch.reset for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert all(batch.inputs.shape == batch.targets.shape == batch.places.shape for batch in batches)
    widths = [batch.inputs.shape[1] for batch in batches]
    assert set(widths[:-1]) <= {length}
    assert 1 <= widths[-1] <= length
    before = [EOS, *stream.symbols.tolist()]
    for column in range(columns):
        inputs = torch.cat([batch.inputs[column] for batch in batches])
        read = inputs[inputs != PAD].tolist()
        assert inputs.tolist() == read + [PAD] * (len(inputs) - len(read))
        begin = before.index(read[0]) if read else 0
        assert read == before[begin : begin + len(read)]
        # What is scored follows what was read, and warm_up symbols were read before, or all that there are.
        targets = torch.cat([batch.targets[column] for batch in batches]).tolist()
        first = next((place for place, target in enumerate(targets) if target != PAD), len(targets))
        assert targets[first : len(read)] == stream.symbols[begin + first : begin + len(read)].tolist()
        if first < len(read):
            assert first == (0 if column == 0 else min(warm_up, size - 1))


@given(sizes, st.integers(1, 12), st.data(), st.integers(1, 5))
def test_windows_score_every_symbol_once_with_the_context_asked_for(size, context, data, group):
    stride = data.draw(st.integers(1, context))
    stream = stream_of(size)
    batches = list(stream.windows(context=context, stride=stride, size=group))
    assert scored(batches) == whole(stream)
    assert all(batch.reset and len(batch.inputs) <= group for batch in batches)
    before = [EOS, *stream.symbols.tolist()]
    first = True
    rows = [row for batch in batches for row in zip(batch.inputs.tolist(), batch.places.tolist(), strict=True)]
    for inputs, places in rows:
        width = min(context, size)
        begin = before.index(inputs[0])
        assert inputs == before[begin : begin + width]
        for read, place in enumerate(places, start=1):
            if place >= 0:
                assert place == begin + read - 1
                assert first or context - stride < read <= context
        first = False


@given(st.integers(12, 80), st.integers(1, 4), st.integers(1, 3), st.integers(0, 50), st.integers(0, 40))
def test_training_goes_on_over_the_stream_in_order(size, columns, length, seed, number):
    stream = stream_of(size)
    count = stream.epoch_batches(columns=columns, length=length)
    batch = stream.training_batch(number, columns=columns, length=length, seed=seed)
    following = stream.training_batch(number + 1, columns=columns, length=length, seed=seed)
    assert batch.places.shape == (columns, length)
    assert batch.reset == (number % count == 0)
    assert batch.tokens == columns * length
    if not following.reset:
        assert torch.equal(following.places[:, 0], (batch.places[:, -1] + 1) % size)
    assert torch.equal(batch.inputs, torch.where(batch.places == 0, EOS, batch.targets - 1))


def test_seeds_and_passes_begin_elsewhere():
    stream = stream_of(1000)
    count = stream.epoch_batches(columns=2, length=10)
    begins = {
        int(stream.training_batch(epoch * count, columns=2, length=10, seed=seed).places[0, 0])
        for epoch, seed in itertools.product(range(4), range(4))
    }
    assert count == 50
    assert len(begins) > 12
