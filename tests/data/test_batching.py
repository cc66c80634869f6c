import itertools
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared.data.batching import endless_batches, epoch_batches

lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=120)
equal = {"equal_lengths": st.booleans()}
sizes = {"tokens": st.integers(1, 200)}, {"sentences": st.integers(1, 20)}
budget = st.one_of(*(st.fixed_dictionaries(each, optional=equal) for each in sizes))


def axes_of(pairs):
    return tuple(np.array(axis) for axis in zip(*pairs, strict=True))


@given(lengths, budget, st.integers(1, 50), st.integers(0, 5))
def test_every_example_is_in_one_batch_and_budgets_hold(pairs, budget, pool, epoch):
    axes = axes_of(pairs)
    batches = epoch_batches(axes, pool=pool, seed=1, epoch=epoch, **budget)
    assert sorted(itertools.chain(*(batch.tolist() for batch in batches))) == list(range(len(pairs)))
    for batch in batches:
        if "tokens" in budget:
            assert len(batch) == 1 or len(batch) * axes[0][batch].max() <= budget["tokens"]
        else:
            assert len(batch) <= budget["sentences"]
        if budget.get("equal_lengths"):
            assert len(set(axes[0][batch].tolist())) == 1


@given(lengths, budget, st.integers(0, 300))
def test_a_resumed_stream_is_the_tail_of_the_whole_one(pairs, budget, start):
    axes = axes_of(pairs)
    whole = endless_batches(axes, pool=3, seed=9, **budget)
    resumed = endless_batches(axes, pool=3, seed=9, start=start, **budget)
    for expected, batch in zip(itertools.islice(whole, start, start + 5), resumed, strict=False):
        assert np.array_equal(expected, batch)


def test_the_order_depends_on_seed_and_epoch_and_nothing_else():
    axes = (np.arange(1, 200), np.arange(1, 200)[::-1])

    def order(seed, epoch):
        return np.concatenate(epoch_batches(axes, pool=4, seed=seed, epoch=epoch, sentences=5)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


@given(lengths, st.integers(1, 9), st.integers(1, 3))
def test_of_equal_lengths_only_the_last_batch_of_each_is_smaller_whatever_the_pool(pairs, sentences, pool):
    axes = axes_of(pairs)
    batches = epoch_batches(axes, pool=pool, seed=1, epoch=2, sentences=sentences, equal_lengths=True)
    sizes = sorted((int(axes[0][batch[0]]), -len(batch)) for batch in batches)
    expected = [
        (length, -min(sentences, count - begin))
        for length, count in Counter(axes[0].tolist()).items() for begin in range(0, count, sentences)
    ]  # fmt: skip
    assert sizes == sorted(expected)
