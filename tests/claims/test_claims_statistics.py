"""Resampling: intervals over seeds and examples, p-values, Holm and slopes, against plain computations."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shared.claims import statistics
from shared.metrics.quantities import ratio


def one_stratum(size):
    return np.zeros(size, dtype=np.int64)


def mean_of(row):
    return statistics.on_examples(np.stack((row, np.ones_like(row)), axis=1), ratio)


def estimate_mean(scores, rng, resamples=800, drawn=None):
    """Scores (K, E) of seeds and examples to the estimate of their mean."""
    functions = [mean_of(row) for row in scores]
    return statistics.over_seeds(
        *statistics.resample(functions, one_stratum(scores.shape[1]), rng, resamples), rng, drawn
    )


def test_chance_between_seed_and_example_is_counted_once():
    """With no shared difficulty, the interval is the plain t interval of the seeds, no wider."""
    scores = np.random.default_rng(5).normal(size=(3, 400))
    low, high = estimate_mean(scores, statistics.generator("once"), 20_000).interval()
    expected = stats.t.interval(0.95, 2, scores.mean(), stats.sem(scores.mean(axis=1)))
    assert (low, high) == pytest.approx(expected, rel=0.15)


def test_one_seed_has_the_spread_of_the_examples_alone():
    values, draws = np.array([1.0]), np.array([[0.5, 1.0, 1.5]])
    found = statistics.over_seeds(values, draws, statistics.generator("one"))
    assert (found.value, found.draws.tolist()) == (1.0, [0.5, 1.0, 1.5])


def test_seeds_and_examples_without_any_spread_have_none():
    values = np.full(5, 0.1)
    found = statistics.over_seeds(values, np.full((5, 50), 0.1), statistics.generator("none"), 20)
    assert found.interval() == pytest.approx((0.1, 0.1))
    assert np.isfinite(found.draws).all()


def test_a_seed_without_a_number_leaves_none():
    """What is not a number may not pass for certainty: the interval says so."""
    values = np.array([1.0, np.nan, 2.0])
    found = statistics.over_seeds(values, np.repeat(values[:, None], 50, axis=1), statistics.generator("nan"))
    assert np.isnan(found.interval()).all()


def test_p_values_count_draws_and_are_never_zero():
    estimate = statistics.Estimate(2.0, np.linspace(1.0, 3.0, 99))
    assert estimate.p_at_most(0.0) == pytest.approx(1 / 100)
    assert estimate.p_at_least(4.0) == pytest.approx(1 / 100)
    assert estimate.p_at_most(2.0) == estimate.p_at_least(2.0) == pytest.approx(51 / 100)
    assert estimate.p_at_most(3.0) == 1.0


def test_resamples_stay_inside_their_stratum():
    strata = np.array([0] * 5 + [1] * 7)
    sizes = [lambda counts, k=k: counts[:, strata == k].sum(axis=1) for k in (0, 1)]
    _, draws = statistics.resample(sizes, strata, statistics.generator("strata"), 100)
    assert (draws[0] == 5).all()
    assert (draws[1] == 7).all()


def test_a_long_test_set_is_resampled_in_blocks_with_the_same_result_shape():
    statistic = statistics.on_examples(np.ones((300_000, 2)), ratio)
    values, draws = statistics.resample([statistic], one_stratum(300_000), statistics.generator("blocks"), 8)
    assert values.tolist() == [1.0]
    assert draws.shape == (1, 8)


def test_a_bootstrap_draws_as_a_naive_one_does():
    """Its spread is that of means of examples picked one by one."""
    row = np.random.default_rng(9).exponential(size=50)
    _, draws = statistics.resample([mean_of(row)], one_stratum(50), statistics.generator("naive"), 5_000)
    picked = np.random.default_rng(10).choice(row, size=(5_000, 50)).mean(axis=1)
    assert np.quantile(draws[0], (0.05, 0.5, 0.95)) == pytest.approx(np.quantile(picked, (0.05, 0.5, 0.95)), rel=0.03)


def test_the_generator_depends_on_the_names_only():
    assert statistics.generator("B15-C1", "cap 50").random() == statistics.generator("B15-C1", "cap 50").random()
    assert statistics.generator("B15-C1", "cap 50").random() != statistics.generator("B15-C1", "cap 30").random()


def by_closed_testing(p_values):
    """Holm's method is closed testing by Bonferroni: a hypothesis falls if every set that it is in does."""
    indices = range(len(p_values))
    sets = [chosen for size in range(1, len(p_values) + 1) for chosen in combinations(indices, size)]
    worst = [max(len(s) * min(p_values[j] for j in s) for s in sets if i in s) for i in indices]
    return [min(1.0, p) for p in worst]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_holm_is_closed_testing_by_bonferroni(p_values):
    assert statistics.holm(p_values) == pytest.approx(by_closed_testing(p_values))


def test_slope_over_bins_is_the_least_squares_line_through_the_bins():
    rng = np.random.default_rng(6)
    covariate = rng.integers(1, 16, size=200).astype(float)
    scores = 3.0 - 0.25 * covariate + rng.normal(size=200)
    labels = statistics.bin_labels(covariate, [(1, 5), (6, 10), (11, 15)])
    table = np.stack((scores, np.ones(200)), axis=1)
    values, draws = statistics.resample(
        [statistics.slope_over_bins(table, ratio, covariate, labels)], labels, statistics.generator("slope"), 500
    )
    means = [(covariate[labels == k].mean(), scores[labels == k].mean()) for k in range(3)]
    assert values[0] == pytest.approx(np.polyfit(*zip(*means, strict=True), 1)[0])
    assert np.quantile(draws[0], 0.025) < -0.25 < np.quantile(draws[0], 0.975) < 0.0


def test_bins_by_range_and_by_number():
    covariate = np.array([1.0, 3.0, 5.0, 6.0, 9.0, 40.0])
    assert statistics.bin_labels(covariate, [(3, 5), (6, 10)]).tolist() == [-1, 0, 0, 1, 1, -1]
    assert statistics.bin_labels(covariate, 3).tolist() == [0, 0, 1, 1, 2, 2]


def test_without_resamples_there_are_values_alone():
    values, draws = statistics.resample(
        [mean_of(np.array([1.0, 3.0]))], one_stratum(2), statistics.generator("none"), 0
    )
    assert values.tolist() == [2.0]
    assert draws.shape == (1, 0)


def outcomes(both, only_first, only_second, neither):
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


@given(*[st.integers(0, 30)] * 4)
def test_p_is_that_of_tosses_at_least_as_uneven(both, only_first, only_second, neither):
    *found, p = statistics.mcnemar(*outcomes(both, only_first, only_second, neither))
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(tosses, k) for k in range(fewer + 1)) / 2**tosses
    assert found == [only_first, only_second]
    assert p == pytest.approx(min(1, 2 * tail))
