"""A measure of one run, by families where examples have them; differences of two, paired over seeds and examples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from shared.claims.effects import per_example
from shared.claims.estimates import difference, estimate_examples, shared_metrics
from shared.claims.results import RunResults, load_results
from shared.claims.statistics import generator, on_examples, over_seeds, resample
from shared.metrics.quantities import Measure
from tests.synthetic_runs import Variant, build

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
