"""The counted tables that floors rest on: proper distributions, as a loop over dictionaries has them."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.counted_tables import Seen, Text, nats_of_text, neighbours, probabilities

RANDOM = np.random.default_rng(0)


def seen(count, contexts=5, symbols=7):
    return Seen(RANDOM.integers(contexts, size=count), RANDOM.integers(symbols, size=count))


def naive(train, context, symbol, lower, discount):
    pairs = Counter(zip(train.contexts.tolist(), train.symbols.tolist(), strict=True))
    total = sum(n for (c, _), n in pairs.items() if c == context)
    types = sum(c == context for c, _ in pairs)
    if not total:
        return lower
    if discount is None:
        return (pairs[context, symbol] + types * lower) / (total + types)
    return (max(pairs[context, symbol] - discount, 0) + discount * types * lower) / total


@pytest.mark.parametrize("discount", [None, 0.75])
def test_a_table_is_a_distribution_and_the_one_that_a_loop_counts(discount):
    train = seen(40)
    lower = RANDOM.dirichlet(np.ones(7))
    for context in range(7):  # the last two are never seen in training
        asked = Seen(np.full(7, context), np.arange(7))
        known = probabilities(train, asked, lower, discount)
        assert known.sum() == pytest.approx(1)
        assert known == pytest.approx([naive(train, context, w, lower[w], discount) for w in range(7)])


def test_a_text_that_repeats_itself_is_known_from_two_symbols_before():
    symbols = np.tile([4, 4, 5, 5], 200)
    text = Text(symbols, np.arange(len(symbols)) >= 2)
    none, one, two = nats_of_text(text, text, 0.75)
    assert none == pytest.approx(np.log(2), abs=0.01)
    assert one == pytest.approx(np.log(2), abs=0.01)
    assert two < 0.01


def test_start_symbols_are_neither_counted_nor_asked():
    symbols = np.array([2, 2, 5, 6, 3, 2, 2, 5, 6, 3])
    text = Text(symbols, symbols != 2)
    assert text.n_grams(1).symbols.tolist() == [5, 6, 3, 5, 6, 3]
    assert len(set(text.n_grams(3).contexts.tolist())) == 3


def test_neighbours_are_those_read_before_and_black_beyond_the_edge():
    picture = np.zeros((1, 3, 3), dtype=np.int64)
    picture[0, 1, 1] = 255
    left, above_left, above, above_right = (8 * 9**n for n in (3, 2, 1, 0))
    assert neighbours(picture, 256).tolist() == [[[0, 0, 0], [0, 0, left], [above_right, above, above_left]]]
