"""Resampling, measures of one run, and differences of two paired over seeds and examples, by plain computations."""

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shared.claims import statistics
from shared.claims.effects import per_example
from shared.claims.estimates import difference, estimate_examples, shared_metrics
from shared.claims.results import RunResults, load_results
from shared.claims.statistics import generator, on_examples, over_seeds, resample
from shared.metrics.quantities import Measure, ratio
from tests.synthetic_runs import Variant, build


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


LEFT, RIGHT = {1: 0.5, 2: 0.7, 3: 0.4, 4: 0.9}, {1: 0.6, 2: 0.9, 3: 0.4, 4: 1.3}


def made(folder, values, metric="nll_per_token"):
    metrics = {seed: {metric: value} for seed, value in values.items()}
    return RunResults(folder, "model", "task", metrics, {}, {}, "word")


@pytest.mark.parametrize("unshared", [{}, {5: 100.0}])
def test_equal_seeds_are_pairs_and_others_do_not_count(tmp_path, unshared):
    found = difference(made(tmp_path, LEFT), made(tmp_path, RIGHT | unshared), "nll_per_token")
    expected = stats.ttest_rel([*RIGHT.values()], [*LEFT.values()]).confidence_interval()
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert (found.left, found.right, found.value) == pytest.approx((0.625, 0.8, 0.175))
    assert found.based_on == "4 paired seeds"


def test_seeds_that_are_not_shared_are_compared_by_welch(tmp_path):
    theirs = {seed + 10: value for seed, value in RIGHT.items()} | {20: 0.2}
    found = difference(made(tmp_path, LEFT), made(tmp_path, theirs), "nll_per_token")
    expected = stats.ttest_ind([*theirs.values()], [*LEFT.values()], equal_var=False).confidence_interval()
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.based_on == "4 and 5 seeds, not paired"


@pytest.mark.parametrize("theirs", [{1: 0.6}, {7: 0.6}])
def test_one_seed_has_no_interval(tmp_path, theirs):
    found = difference(made(tmp_path, {1: 0.5}), made(tmp_path, theirs), "nll_per_token")
    assert found.interval is None
    assert not found.sure


def test_other_data_have_no_interval(tmp_path):
    found = difference(made(tmp_path, LEFT), made(tmp_path, RIGHT), "nll_per_token", same_data=False)
    assert (found.interval, found.based_on) == (None, "test data that differ or are not known")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    variants = {"good": Variant("generated", 0.99), "poor": Variant("generated", 0.9)}
    return load_results(build(tmp_path_factory.mktemp("runs"), variants))


@pytest.mark.parametrize(("metric", "examples"), [("bleu", 100), ("test_long.nll_per_token", 20)])
def test_examples_that_are_at_hand_are_resampled(runs, metric, examples):
    good, poor = runs["good"], runs["poor"]
    if metric.startswith("test_long"):
        good, poor = (replace(run, metrics={s: {metric: float(s)} for s in run.seeds}) for run in (good, poor))
    found = difference(good, poor, metric)
    assert found.based_on == f"3 paired seeds, {examples} examples"
    assert found.interval is not None


def test_examples_of_one_seed_have_no_interval(runs):
    one = [replace(run, metrics={1: run.metrics[1]}) for run in runs.values()]
    assert difference(*one, "bleu").interval is None


def test_a_large_difference_is_sure(runs):
    good, poor = runs["good"], runs["poor"]
    found = difference(good, poor, "bleu")
    assert found.sure
    assert found.interval[0] < found.value < found.interval[1] < 0.0
    pairs = np.array([poor.metrics[seed]["bleu"] - good.metrics[seed]["bleu"] for seed in good.seeds])
    assert found.value == pytest.approx(pairs.mean())


def test_only_measures_that_are_better_one_way_are_compared(tmp_path):
    values = {"nll_per_token": 1.0, "parameter_count": 10, "test_long.bleu": 3.0, "seconds": 1.0}
    run = RunResults(tmp_path, "model", "task", {1: values}, {}, {}, "word")
    assert shared_metrics(run, run) == ["nll_per_token", "test_long.bleu"]
    assert shared_metrics(run, replace(run, metrics={1: {"test_long.bleu": 1.0}})) == ["test_long.bleu"]


MEAN = Measure("Mean", "nats", statistics=lambda row: (row["loss"], 1), corpus=lambda sums: sums[..., 0] / sums[..., 1])


def rows(values, families=None):
    named = [{"family": family} for family in families] if families else [{}] * len(values)
    return [{"loss": value} | family for value, family in zip(values, named, strict=True)]


def width(estimate):
    low, high = estimate.interval()
    return high - low


def test_copies_of_an_example_in_one_family_tell_no_more_than_one():
    values = [*np.random.default_rng(0).normal(size=40)]
    names = [f"family {n}" for n in range(40)]
    once = estimate_examples(MEAN, [rows(values, names)], generator("a"), "here")
    copied = estimate_examples(MEAN, [rows(values * 9, names * 9)], generator("a"), "here")
    free = estimate_examples(MEAN, [rows(values * 9)], generator("a"), "here")
    assert np.allclose(once.draws, copied.draws)
    assert 2.5 < width(once) / width(free) < 3.5  # nine times as many independent examples: a third of it


def test_few_examples_have_the_wider_interval_of_those_that_decide_claims():
    several = [rows([*np.random.default_rng(seed).normal(size=5)]) for seed in range(3)]
    rng = generator("a")
    functions = [on_examples(per_example(MEAN, each, "here"), MEAN.corpus) for each in several]
    values, draws = resample(functions, np.zeros(5, dtype=np.int64), rng, 2_000)
    expected = over_seeds(values, draws, rng, drawn=5)
    found = estimate_examples(MEAN, several, generator("a"), "here")
    assert np.array_equal(found.draws, expected.draws)
    assert width(found) > 1.1 * width(over_seeds(values, draws, generator("b")))
