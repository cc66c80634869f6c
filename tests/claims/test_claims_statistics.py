"""Resampling: coverage of the intervals, p-values, Holm, slopes and exponents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from shared.claims.statistics import (
    Estimate,
    bin_labels,
    generator,
    holm,
    jointly_over_seeds,
    on_examples,
    over_seeds,
    power_law,
    rank_correlation,
    resample,
    slope_over_bins,
)
from shared.metrics.quantities import ratio
from shared.metrics.translation import corpus_bleu

TRIALS, CONFIDENCE = 300, 1e-5


def one_stratum(size):
    return np.zeros(size, dtype=np.int64)


def estimate_mean(scores, rng, resamples=800):
    """Scores (K, E) of seeds and examples to the estimate of their mean."""
    functions = [on_examples(np.stack((row, np.ones_like(row)), axis=1), ratio) for row in scores]
    return over_seeds(*resample(functions, one_stratum(scores.shape[1]), rng, resamples), rng)


def covered(make, rng):
    """How many of TRIALS intervals of a difference whose true value is 0 hold it."""
    count = 0
    for _ in range(TRIALS):
        first, second = make()
        drawn = np.random.default_rng(rng.integers(2**32))
        functions = [
            on_examples(np.stack((row, np.ones_like(row)), axis=1), ratio) for row in np.concatenate((first, second))
        ]
        values, draws = resample(functions, one_stratum(first.shape[1]), drawn, 800)
        seeds = len(first)
        low, high = (
            over_seeds(values[:seeds], draws[:seeds], drawn) - over_seeds(values[seeds:], draws[seeds:], drawn)
        ).interval()
        count += low <= 0.0 <= high
    return count


def test_interval_over_examples_covers_about_95_percent():
    """One seed, skewed scores. Error rate 2e-5 for any coverage from 0.93 to 0.965."""
    rng = np.random.default_rng()
    hits = covered(lambda: (rng.exponential(size=(1, 100)), rng.exponential(size=(1, 100))), rng)
    assert stats.binom.ppf(CONFIDENCE, TRIALS, 0.93) <= hits <= stats.binom.ppf(1 - CONFIDENCE, TRIALS, 0.965)


def test_interval_over_seeds_covers_at_least_95_percent():
    """Three seeds whose variation dominates; the interval may be conservative. Error rate 1e-5."""
    rng = np.random.default_rng()

    def make():
        hard = rng.normal(size=(1, 60))  # shared by both variants: the pairing takes it out
        return tuple(hard + 0.2 * rng.normal(size=(3, 60)) + 0.5 * rng.normal(size=(3, 1)) for _ in range(2))

    assert covered(make, rng) >= stats.binom.ppf(CONFIDENCE, TRIALS, 0.95)


def test_interval_over_seeds_that_differ_by_chance_only_covers_at_least_95_percent():
    """Three seeds of one quality: what differs is which examples each gets right. Error rate 1e-5."""
    rng = np.random.default_rng()

    def make():
        chance = rng.uniform(0.3, 0.9, size=(1, 60))
        return tuple((rng.random((3, 60)) < chance).astype(float) for _ in range(2))

    assert covered(make, rng) >= stats.binom.ppf(CONFIDENCE, TRIALS, 0.95)


def test_chance_between_seed_and_example_is_counted_once():
    """With no shared difficulty, the interval is the plain t interval of the seeds, no wider."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(3, 400))
    low, high = estimate_mean(scores, generator("once"), 20_000).interval()
    expected = stats.t.interval(0.95, 2, scores.mean(), stats.sem(scores.mean(axis=1)))
    assert (low, high) == pytest.approx(expected, rel=0.15)


def test_picking_three_seeds_with_replacement_would_cover_far_less():
    """Why seeds are not resampled: the percentile interval misses the truth too often. Error rate 1e-5."""
    rng = np.random.default_rng()
    picks = np.array(np.meshgrid(*[range(3)] * 3)).reshape(3, -1)
    hits = 0
    for _ in range(TRIALS):
        low, high = np.quantile(rng.normal(size=3)[picks].mean(axis=0), (0.025, 0.975))
        hits += low <= 0.0 <= high
    assert hits <= stats.binom.ppf(1 - CONFIDENCE, TRIALS, 0.80)


def test_p_values_under_the_null_are_no_smaller_than_they_should_be():
    """Share of p < 0.1 at most 0.12 (a small sample's bootstrap is slightly liberal). Error rate 1e-5."""
    rng = np.random.default_rng()
    p_values = [estimate_mean(rng.normal(size=(1, 80)), rng).p_value((0.0, np.inf)) for _ in range(TRIALS)]
    assert sum(p < 0.1 for p in p_values) <= stats.binom.ppf(1 - CONFIDENCE, TRIALS, 0.12)


scores = arrays(float, (2, 12), elements=st.integers(-50, 50).map(float))


@given(scores, scores)
def test_swapping_the_variants_negates_the_effect(first, second):
    a, b = (estimate_mean(x, generator("swap"), 50) for x in (first, second))
    assert (a - b).value == -(b - a).value
    assert (a - b).interval() == pytest.approx(tuple(-end for end in reversed((b - a).interval())))


@given(scores, st.integers(-20, 20))
def test_adding_a_constant_shifts_estimate_and_interval(first, constant):
    plain, shifted = (estimate_mean(x, generator("shift"), 50) for x in (first, first + constant))
    assert shifted.value == pytest.approx(plain.value + constant)
    assert np.subtract(shifted.interval(), constant) == pytest.approx(plain.interval(), abs=1e-9)


@given(scores)
def test_a_variant_against_itself_has_no_spread_over_examples(first):
    statistic = on_examples(np.stack((first[0], np.ones(12)), axis=1), ratio)
    values, draws = resample([statistic, statistic], one_stratum(12), generator("self"), 50)
    assert values[0] == values[1]
    assert (draws[0] == draws[1]).all()


def test_the_seed_variation_widens_the_interval():
    rng = generator("wide")
    examples = np.tile(np.linspace(0.0, 1.0, 200), (3, 1))
    alike = estimate_mean(examples, rng).interval()
    apart = estimate_mean(examples + np.array([[-1.0], [0.0], [1.0]]), rng).interval()
    # Student's t with two degrees of freedom: 4.30 standard errors of 1/√3 each way
    assert apart[1] - apart[0] == pytest.approx(2 * 4.303 / np.sqrt(3), rel=0.3)
    assert alike[1] - alike[0] < 0.15


def test_resamples_stay_inside_their_stratum():
    strata = np.array([0] * 5 + [1] * 7)
    sizes = [lambda counts, k=k: counts[:, strata == k].sum(axis=1) for k in (0, 1)]
    _, draws = resample(sizes, strata, generator("strata"), 100)
    assert (draws[0] == 5).all()
    assert (draws[1] == 7).all()


def test_a_long_test_set_is_resampled_in_blocks_with_the_same_result_shape():
    statistic = on_examples(np.ones((300_000, 2)), ratio)
    values, draws = resample([statistic], one_stratum(300_000), generator("blocks"), 8)
    assert values.tolist() == [1.0]
    assert draws.shape == (1, 8)


def test_the_generator_depends_on_the_names_only():
    assert generator("B15-C1", "cap 50").random() == generator("B15-C1", "cap 50").random()
    assert generator("B15-C1", "cap 50").random() != generator("B15-C1", "cap 30").random()


def test_holm_by_hand():
    # sorted .01 .02 .03 .04 times 4 3 2 1 = .04 .06 .06 .04, made monotone
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    assert all(new >= old for new, old in zip(adjusted, p_values, strict=True))
    assert np.argsort(p_values, kind="stable").tolist() == sorted(
        range(len(p_values)), key=lambda i: (adjusted[i], p_values[i], i)
    )


def test_equivalence_is_two_one_sided_tests():
    draws = np.linspace(-0.5, 0.5, 1001)
    assert Estimate(0.0, draws).p_value((-1.0, 1.0)) == pytest.approx(2 / 1002)
    assert Estimate(0.0, draws).p_value((-0.1, 0.1)) > 0.5
    assert Estimate(0.0, draws).p_value((-0.45, 10.0)) == pytest.approx(2 * 52 / 1002)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_effect_beyond_a_margin_has_a_small_p_value_of_lying_outside(sign):
    draws = sign * np.linspace(2.0, 3.0, 1001)
    far = Estimate(sign * 2.5, draws)
    assert far.p_value((-1.0, 1.0)) == 1.0
    assert far.p_value_outside((-1.0, 1.0)) == pytest.approx(2 / 1002)
    assert far.p_value_outside((-2.05, 2.05)) == pytest.approx(2 * 52 / 1002)
    assert far.p_value_outside((-2.5, 2.5)) > 0.9
    assert far.p_value_outside((-4.0, 4.0)) == 1.0
    assert far.p_value_outside((0.0, np.inf)) == far.p_value((0.0, np.inf))


def test_an_effect_at_the_margin_is_seldom_found_outside():
    rng = np.random.default_rng(31)
    p_values = [estimate_mean(rng.normal(1.0, size=(1, 80)), rng).p_value_outside((-1.0, 1.0)) for _ in range(TRIALS)]
    assert sum(p < 0.1 for p in p_values) <= stats.binom.ppf(1 - CONFIDENCE, TRIALS, 0.06)


def test_slope_over_bins_recovers_a_line():
    covariate = np.repeat([2.0, 7.0, 12.0], 50)
    rng = np.random.default_rng()
    scores = 3.0 - 0.25 * covariate + 0.01 * rng.normal(size=150)
    labels = bin_labels(covariate, [(0, 5), (6, 10), (11, 15)])
    slope = slope_over_bins(np.stack((scores, np.ones(150)), axis=1), ratio, covariate, labels)
    values, draws = resample([slope], labels, generator("slope"), 500)
    assert values[0] == pytest.approx(-0.25, abs=0.005)
    assert np.quantile(draws[0], 0.975) < -0.24


def test_bins_by_range_and_by_number():
    covariate = np.array([1.0, 3.0, 5.0, 6.0, 9.0, 40.0])
    assert bin_labels(covariate, [(3, 5), (6, 10)]).tolist() == [-1, 0, 0, 1, 1, -1]
    assert bin_labels(covariate, 3).tolist() == [0, 0, 1, 1, 2, 2]


def test_power_law_on_quadratic_and_linear_measurements():
    x = np.repeat([256.0, 512.0, 1024.0, 2048.0], 3)
    noise = np.exp(0.02 * np.random.default_rng().normal(size=12))
    quadratic = power_law(x, 3e-6 * x**2 * noise, generator("square"))
    low, high = quadratic.interval()
    assert quadratic.value == pytest.approx(2.0, abs=0.1)
    assert low > 1.8
    assert high < 2.2
    assert power_law(x, 5e-3 * x, generator("line")).interval() == pytest.approx((1.0, 1.0))
    assert power_law(x, np.full_like(x, 2.0), generator("constant")).interval() == (0.0, 0.0)


def test_one_call_resamples_every_variant_and_seed():
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 9, (600, 10)).astype(float) for _ in range(6)]
    values, draws = resample([on_examples(row, corpus_bleu) for row in rows], one_stratum(600), rng, 2_000)
    assert draws.shape == (6, 2_000)
    assert values == pytest.approx([float(corpus_bleu(row.sum(axis=0))) for row in rows])


def correlated(rng, *shape, correlation):
    """Two standard normal arrays of a shape, correlated."""
    first, second = rng.normal(size=(2, *shape))
    return first, correlation * first + np.sqrt(1.0 - correlation**2) * second


def correlation_of(truths, rng, *, seeds=3, examples=60, spread=0.1):
    """Measure things whose true values (2, V) are given: noisy examples, some hardness shared, noisy seeds."""
    count = truths.shape[1]
    shift = np.stack(correlated(rng, count, seeds, correlation=0.8))  # (2, V, K)
    noise = np.stack(correlated(rng, count, seeds, examples, correlation=0.8)) + rng.normal(size=examples)
    scores = truths[:, :, None, None] + spread * shift[..., None] + 0.5 * noise  # (2, V, K, E)
    functions = [on_examples(np.stack((row, np.ones_like(row)), axis=1), ratio) for row in scores.reshape(-1, examples)]
    values, draws = resample(functions, one_stratum(examples), rng, 400)
    values, draws = values.reshape(2, count, seeds), draws.reshape(2, count, seeds, -1)
    both = [jointly_over_seeds(values[:, v], draws[:, v], rng) for v in range(count)]
    return rank_correlation(*zip(*both, strict=True))


@pytest.mark.parametrize(("scale", "looseness"), [(1.0, 0.5), (0.4, 1.0), (0.4, 3.0)])
def test_interval_of_a_rank_correlation_covers_at_least_90_percent(scale, looseness):
    """Eight things, some well apart, some not. It errs downwards if at all, hence 95 for its lower end."""
    rng = np.random.default_rng()
    low_held = high_held = 0
    for _ in range(TRIALS):
        first = scale * rng.normal(size=8)
        truths = np.stack((first, first + looseness * scale * rng.normal(size=8)))
        true = float(stats.spearmanr(*truths).statistic)
        low, high = correlation_of(truths, rng).interval()
        low_held += low <= true + 1e-9
        high_held += high >= true - 1e-9
    assert low_held >= stats.binom.ppf(CONFIDENCE, TRIALS, 0.95)
    assert high_held >= stats.binom.ppf(CONFIDENCE, TRIALS, 0.90)


def test_noise_alone_is_no_high_rank_correlation():
    """Things that do not differ, measured with noise that the measures share: it never lies above 0.8 for sure."""
    rng = np.random.default_rng()
    lows = [correlation_of(np.zeros((2, 8)), rng).interval()[0] for _ in range(100)]
    assert sum(low > 0.8 for low in lows) <= stats.binom.ppf(1 - CONFIDENCE, 100, 0.025)


values = arrays(float, (2, 6), elements=st.integers(-9, 9).map(float))


def constant(row):
    return [Estimate(value, np.full(5, value)) for value in row]


@given(values)
def test_rank_correlation_without_noise_is_spearmans(rows):
    found = rank_correlation(*map(constant, rows))
    if any(len(set(row)) == 1 for row in rows.tolist()):
        assert np.isnan(found.value)
        assert np.isnan(found.draws).all()
    else:
        assert found.value == pytest.approx(stats.spearmanr(*rows).statistic)
        assert found.interval() == pytest.approx((found.value, found.value))


@given(values)
def test_rank_correlation_is_symmetric_and_blind_to_scale(rows):
    first, second = map(constant, rows)
    found = rank_correlation(first, second).value
    assert rank_correlation(second, first).value == pytest.approx(found, nan_ok=True)
    assert rank_correlation([3.0 * e for e in first], second).value == pytest.approx(found, nan_ok=True)
    assert rank_correlation([-1.0 * e for e in first], second).value == pytest.approx(-found, nan_ok=True)


def test_seeds_of_several_measures_are_drawn_together():
    """Each measure alone as by over_seeds; together with the seeds' correlation."""
    rng = np.random.default_rng(7)
    rows = np.array([[1.0, 2.0, 4.0], [-2.0, -4.0, -8.0]])
    first, second = jointly_over_seeds(rows, np.repeat(rows[..., None], 20_000, axis=2), rng)
    alone = over_seeds(rows[0], np.repeat(rows[0][:, None], 20_000, axis=1), rng)
    assert first.interval() == pytest.approx(alone.interval(), rel=0.1)
    assert second.draws == pytest.approx(-2.0 * first.draws)
    assert (first.value, second.value) == pytest.approx((7 / 3, -14 / 3))
