"""Intervals beside the numbers of reports draw what is independent: families where examples have them."""

import numpy as np

from shared.claims.effects import per_example
from shared.claims.statistics import generator, on_examples, over_seeds, resample
from shared.metrics.quantities import Measure
from shared.reports.estimates import estimated

MEAN = Measure("Mean", "nats", statistics=lambda row: (row["loss"], 1), corpus=lambda sums: sums[..., 0] / sums[..., 1])


def rows(values, families=None):
    named = families or [None] * len(values)
    return [
        {"loss": value} | ({} if family is None else {"family": family})
        for value, family in zip(values, named, strict=True)
    ]


def width(estimate):
    low, high = estimate.interval()
    return high - low


def test_copies_of_an_example_in_one_family_tell_no_more_than_one():
    values = [*np.random.default_rng(0).normal(size=40)]
    names = [f"family {n}" for n in range(40)]
    once = estimated(MEAN, [rows(values, names)], generator("a"), "here")
    copied = estimated(MEAN, [rows(values * 9, names * 9)], generator("a"), "here")
    free = estimated(MEAN, [rows(values * 9)], generator("a"), "here")
    assert np.allclose(once.draws, copied.draws)
    assert 2.5 < width(once) / width(free) < 3.5  # nine times as many independent examples: a third of it


def test_few_examples_have_the_wider_interval_of_those_that_decide_claims():
    several = [rows([*np.random.default_rng(seed).normal(size=5)]) for seed in range(3)]
    rng = generator("a")
    functions = [on_examples(per_example(MEAN, each, "here"), MEAN.corpus) for each in several]
    values, draws = resample(functions, np.zeros(5, dtype=np.int64), rng, 2_000)
    expected = over_seeds(values, draws, rng, drawn=5)
    found = estimated(MEAN, several, generator("a"), "here")
    assert np.array_equal(found.draws, expected.draws)
    assert width(found) > 1.1 * width(over_seeds(values, draws, generator("b")))
