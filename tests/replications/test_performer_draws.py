"""Intervals of draws: they hold what they are of as often as they say, and metrics have their names."""

import numpy as np
import pytest
from scipy import stats

from replications.performer.draws import Interval, mean_interval, ratio_interval


def test_the_interval_of_a_mean_is_students():
    x = np.random.default_rng(1).normal(3, 2, (7, 4))
    found = mean_interval(x, 0.9)
    ends = stats.t.interval(0.9, 6, loc=x.mean(0), scale=x.std(0, ddof=1) / np.sqrt(7))
    np.testing.assert_allclose(found, [x.mean(0), *ends])


def test_it_holds_the_mean_19_times_in_20():
    _, low, high = mean_interval(np.random.default_rng(1).normal(3, 2, (5, 20_000)))
    assert ((low < 3) & (high > 3)).mean() == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_the_interval_of_a_ratio_holds_the_ratio_19_times_in_20(shared):
    """Of lognormal draws, whose means are known, independent or in pairs."""
    rng = np.random.default_rng(1)
    common, *own = rng.normal(size=(3, 1000, 4000))
    x, y = (np.exp(np.sqrt(shared) * common + np.sqrt(1 - shared) * z) for z in own)
    value, low, high = ratio_interval(3 * x, y)
    np.testing.assert_allclose(value, 3 * x.mean(0) / y.mean(0))
    assert ((low < 3) & (high > 3)).mean() == pytest.approx(0.95, abs=0.015)


def test_pairs_make_the_interval_of_a_ratio_narrow():
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(500, 1))
    y = x * rng.uniform(0.9, 1.1, size=x.shape)
    together, apart = (ratio_interval(x, other) for other in (y, y[::-1]))
    assert together.high - together.low < 0.1 * (apart.high - apart.low)


def test_the_ratio_to_a_constant_is_a_mean():
    x = np.random.default_rng(1).uniform(4, 5, (400, 3))
    value, low, high = ratio_interval(x, np.array([[2.0, 2.0, 4.0]]))
    _, expected_low, expected_high = mean_interval(x / [2.0, 2.0, 4.0])
    np.testing.assert_allclose(value, x.mean(0) / [2.0, 2.0, 4.0])
    np.testing.assert_allclose([low, high], [expected_low, expected_high], rtol=1e-4)


def test_the_interval_of_logarithms_is_that_of_a_geometric_mean():
    x = np.random.default_rng(1).uniform(4, 5, (10, 2))
    np.testing.assert_allclose(mean_interval(np.log(x)).exp().value, stats.gmean(x))


def test_intervals_become_metrics_by_size():
    both = Interval(np.array([1.0, 2.0]), np.array([0.5, 1.5]), np.array([3.0, 4.0]))
    named = both.named("some_thing.error", ["_m16", "_m64"])
    assert named == {
        "some_thing.error_m16": 1, "some_thing.error_m64": 2, "some_thing.error_low_m16": 0.5,
        "some_thing.error_low_m64": 1.5, "some_thing.error_high_m16": 3, "some_thing.error_high_m64": 4,
    }  # fmt: skip
    single = Interval(*(np.array(x) for x in (1.0, 0.5, 2.0))).named("thing.growth")
    assert single == {"thing.growth": 1, "thing.growth_low": 0.5, "thing.growth_high": 2}
