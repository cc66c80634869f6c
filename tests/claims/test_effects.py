"""One effect for every seed, of every kind of comparison, against plain computations."""

import re

import numpy as np
import pytest
from scipy import stats

from shared.claims import effects as module
from shared.claims.effects import effects, meets
from tests.claims.made_runs import comparison, made, with_losses
from tests.refused import assert_refused

RESAMPLES = 50
LOG, ALONE = {"scale": "log", "relevant": 1.1}, {"variants": ("a",), "than": 2.0}


def found(runs, **changes):
    return effects(comparison(**changes), runs, np.random.default_rng(0))


def numbers(**of_variants):
    """Runs that have a score alone, one number per seed."""
    return [made(variant, {"score": row}) for variant, row in of_variants.items()]


def with_others(names, first, second):
    """Runs that have a score and another number: tables (variants, seeds)."""
    return [made(v, {"score": x, "other": y}) for v, x, y in zip(names, first, second, strict=True)]


@pytest.mark.parametrize(("changes", "expected"), [
    ({"kind": "greater"}, [2.0, -3.0]),
    ({"kind": "less"}, [-2.0, 3.0]),
    ({"kind": "equal"}, [2.0, -3.0]),
    ({"kind": "greater", **LOG}, np.log([3.0, 0.25])),
    ({"kind": "less", **LOG}, np.log([1 / 3.0, 4.0])),
    ({"kind": "greater", **ALONE}, [1.0, -1.0]),
    ({"kind": "less", **ALONE}, [-1.0, 1.0]),
    ({"kind": "greater", **ALONE, **LOG}, np.log([1.5, 0.5])),
])  # fmt: skip
def test_a_seed_has_the_difference_of_its_pair_or_of_a_number_in_the_claim_s_direction(changes, expected):
    sides = {"a": 2.0} if "than" in changes else {"a": 2.0, "b": 2.5}
    result = found(numbers(a=[3.0, 1.0], b=[1.0, 4.0])[: len(sides)], **changes)
    assert result.values == pytest.approx(expected)
    assert result.draws == pytest.approx(np.repeat(np.array(expected)[:, None], RESAMPLES, axis=1))
    assert (result.seeds, result.sides, result.n, result.drawn_of) == ((1, 2), sides, None, "")


def test_seeds_that_both_sides_have_are_pairs_whatever_their_order():
    first = made("a", {"score": [1.0, 2.0, 3.0]}, seeds=(3, 1, 2))
    second = made("b", {"score": [10.0, 20.0, 30.0]}, seeds=(2, 3, 4))
    result = found([first, second])
    assert result.seeds == (2, 3)
    assert result.values.tolist() == [3.0 - 10.0, 1.0 - 20.0]
    assert result.sides == {"a": 2.0, "b": 15.0}  # of the pairs alone


@pytest.mark.parametrize(("kind", "sign"), [("rises", 1.0), ("falls", -1.0)])
def test_a_trend_is_the_least_squares_slope_per_step(kind, sign):
    table = np.random.default_rng(1).normal(size=(4, 3))
    runs = numbers(**dict(zip("abcd", table, strict=True)))
    expected = [sign * np.polyfit(range(4), table[:, seed], 1)[0] for seed in range(3)]
    assert found(runs, kind=kind, variants=tuple("abcd")).values == pytest.approx(expected)


def test_a_trend_of_logarithms_is_the_rate_per_step():
    result = found(numbers(a=[2.0], b=[6.0], c=[18.0]), kind="rises", variants=tuple("abc"), **LOG)
    assert np.exp(result.values) == pytest.approx([3.0])


@pytest.mark.parametrize(("sign", "times"), [("positive", 1.0), ("negative", -1.0)])
def test_a_correlation_is_spearman_s_of_every_seed(sign, times):
    first, second = np.random.default_rng(2).integers(0, 5, size=(2, 7, 4)).astype(float)
    names = tuple("abcdefg")
    expected = [times * stats.spearmanr(first[:, seed], second[:, seed]).statistic - 0.2 for seed in range(4)]
    changes = {"kind": "correlation", "variants": names, "other": "other", "than": 0.2, "relevant": 0.3, "sign": sign}
    assert found(with_others(names, first, second), **changes).values == pytest.approx(expected)


def test_how_well_seeds_agree_is_their_own_correlation():
    first, second = np.random.default_rng(6).normal(size=(2, 7, 3)) + np.arange(7.0)[:, None]
    names = tuple("abcdefg")
    pairs = (0, 1), (0, 2), (1, 2)
    own = [np.mean([stats.spearmanr(of[:, i], of[:, j]).statistic for i, j in pairs]) for of in (first, second)]
    changes = {"kind": "correlation", "variants": names, "other": "other", "relevant": 0.3}
    assert found(with_others(names, first, second), **changes).repeats == pytest.approx(np.sqrt(own[0] * own[1]))
    assert found(with_others(names, first[:, :1], second[:, :1]), **changes).repeats == 1.0
    assert found(numbers(a=[3.0, 1.0], b=[2.0, 5.0])).repeats == 1.0


def test_examples_are_resampled_alike_for_both_sides_and_all_seeds():
    """What is hard for all cancels: two variants that differ by a constant on every example differ by it always."""
    rng = np.random.default_rng(3)
    hard = rng.normal(size=(1, 30))
    own = rng.normal(size=(4, 1))
    both = [with_losses("a", hard + own), with_losses("b", hard + own + 0.5)]
    result = found(both, kind="less", metric="nll_per_token")
    assert result.draws == pytest.approx(np.full((4, RESAMPLES), 0.5))
    assert (result.n, result.drawn_of, result.drawn) == (30, "examples", 30)
    third = found([with_losses("a", hard + own), with_losses("b", 2 * hard)], metric="nll_per_token")
    assert third.draws.std(axis=1).min() > 0.0


def test_seeds_with_data_of_their_own_have_their_own_examples_and_nothing_is_resampled():
    """The second seed has its short examples elsewhere, and more of them."""
    lengths = {1: [3, 3, 9, 9], 2: [9, 3, 3, 3]}
    scores = {"a": np.array([[1.0, 2.0, 50.0, 60.0], [70.0, 4.0, 5.0, 6.0]]), "b": np.zeros((2, 4))}
    runs = [with_losses(variant, table) for variant, table in scores.items()]
    for run in runs:
        vars(run)["drawn_anew"] = True
        for seed, examples in run.examples.items():
            for example, length in zip(examples, lengths[seed], strict=True):
                example["source_length"] = length
    result = found(runs, metric="nll_per_token", where={"source_length": (1, 5)})
    assert result.values == pytest.approx([1.5, 5.0])
    assert result.draws == pytest.approx(np.repeat([[1.5], [5.0]], RESAMPLES, axis=1))
    assert (result.n, result.drawn_of, result.drawn) == (2, "draws", None)


def test_only_examples_that_meet_the_conditions_count():
    scores = np.arange(12.0).reshape(1, 12) ** 2
    fields = {"source_length": [*range(1, 13)], "unknown": [i % 2 == 0 for i in range(12)]}
    runs = [with_losses("a", scores, **fields), with_losses("b", 0 * scores, **fields)]
    where = {"source_length": (3.0, 8.0), "unknown": False}
    result = found(runs, metric="nll_per_token", where=where)
    assert (result.values.tolist(), result.n) == ([np.mean([9.0, 25.0, 49.0])], 3)


def test_a_condition_is_a_value_or_a_range_with_its_ends():
    example = {"split": "test", "source_length": 5, "exact": 1}
    assert meets(example, {"split": "test", "source_length": (5.0, 9.0)})
    assert meets(example, {"source_length": (1.0, 5.0), "exact": 1})
    assert not meets(example, {"source_length": (6.0, 9.0)})
    assert not meets(example, {"target_length": (0.0, 9.0)})
    assert not meets(example, {"split": "valid"})


def test_a_slope_over_examples_is_the_line_through_bins_of_equal_weight():
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 16, size=90)
    scores = rng.normal(size=(2, 3, 90)) + 0.1 * lengths
    bins = ((1.0, 5.0), (6.0, 10.0), (11.0, 14.0))  # 15 is in none

    def slope(row):
        members = [(lengths >= low) & (lengths <= high) for low, high in bins]
        return np.polyfit([lengths[m].mean() for m in members], [row[m].mean() for m in members], 1)[0]

    runs = [with_losses(v, table, source_length=lengths.tolist()) for v, table in zip("ab", scores, strict=True)]
    over = {"covariate": "source_length", "bins": bins}
    result = found(runs, kind="less", metric="nll_per_token", over=over)
    assert result.values == pytest.approx([slope(b) - slope(a) for a, b in zip(*scores, strict=True)])
    assert result.n == int((lengths < 15).sum())
    alone = found(runs[:1], kind="less", metric="nll_per_token", over=over, variants=("a",), than=0.0)
    assert alone.values == pytest.approx([-slope(row) for row in scores[0]])


def test_families_are_drawn_together_or_not_at_all():
    """Nine relatives and one of another family: every draw is a mix of the two families' sums."""
    scores = np.array([[1.0] * 9 + [11.0]])
    family = ["x"] * 9 + ["y"]
    runs = [with_losses("a", scores, family=family), with_losses("b", 0 * scores, family=family)]
    result = found(runs, metric="nll_per_token")
    assert result.values.tolist() == [2.0]
    assert set(result.draws.ravel().tolist()) == {1.0, 2.0, 11.0}  # twice x, each once, twice y
    assert (result.n, result.drawn_of, result.drawn) == (10, "families", 2)


def test_a_correlation_of_examples_and_a_number_of_whole_runs():
    rng = np.random.default_rng(5)
    names, runs = tuple("abcdef"), []
    for variant in names:
        run = with_losses(variant, rng.normal(size=(2, 20)))
        scores = {seed: metrics | {"other": rng.normal()} for seed, metrics in run.metrics.items()}
        runs.append(made(variant, {name: [scores[s][name] for s in (1, 2)] for name in scores[1]},
                         examples=run.examples))  # fmt: skip
    changes = {"kind": "correlation", "variants": names, "relevant": 0.3}
    both = [found(runs, metric=first, other=second, **changes)
            for first, second in (("nll_per_token", "other"), ("other", "nll_per_token"))]  # fmt: skip
    table = {name: [[run.metrics[s][name] for s in (1, 2)] for run in runs] for name in ("nll_per_token", "other")}
    for result in both:
        expected = stats.spearmanr([row[0] for row in table["nll_per_token"]], [row[0] for row in table["other"]])
        assert result.values[0] == pytest.approx(expected.statistic)
    assert both[0].sides["a"] == pytest.approx(np.mean(table["nll_per_token"][0]))
    assert both[1].sides["a"] == pytest.approx(np.mean(table["other"][0]))


SCORES = np.ones((2, 6))
OTHER = with_losses("b", SCORES)
OTHER.examples[2][3]["id"] = "x"
PLAIN = [with_losses("a", SCORES, source_length=[1] * 6), with_losses("b", SCORES, source_length=[1] * 6)]
KIN = [with_losses(v, SCORES, source_length=[*range(6)], family=["x"] * 6) for v in "ab"]


@pytest.mark.parametrize(("runs", "changes", "message"), [
    ([made("a", {"score": [1.0]}, seeds=(1,)), made("b", {"score": [1.0]}, seeds=(101,))], {"metric": "score"},
     "'primary': a and b share no seed, and only equal seeds are compared."),
    (numbers(a=[1.0, 2.0], b=[1.0, 2.0]), {"metric": "speed"}, "a/metrics.json has no 'speed' for every seed; "),
    ([PLAIN[0], OTHER], {}, "examples of b, seed 2, cannot be paired: example 3 is 'x', not '3'; "),
    ([PLAIN[0], with_losses("b", SCORES[:, :4])], {}, "cannot be paired: there are 4, not 6"),
    (PLAIN, {"where": {"split": "nowhere"}}, "no test example of made/a meets {'split': 'nowhere'}."),
    (PLAIN, {"where": {"id": (1.0, 5.0)}}, "'id' is no number of every test example of made/a; choose from nll, "),
    (PLAIN, {"where": {"sauce_length": (1.0, 5.0)}}, "'sauce_length' is no number of every test example of made/a"),
    (PLAIN, {"over": {"covariate": "split", "bins": 3}}, "'split' is no number of every test example of made/a; "),
    (KIN, {"over": {"covariate": "sauce", "bins": 3}}, "choose from nll, source_length, tokens."),
    (PLAIN, {"metric": "bleu"}, "carry nothing to compute 'BLEU' from."),
    (PLAIN, {"over": {"bins": ((1, 5), (30, 40))}}, "fill fewer than two bins of source_length"),
    (KIN, {"over": {"bins": ((0, 2), (3, 5))}}, "there are no slopes over examples that have families."),
    (numbers(a=[1.0], b=[1.0]), {"metric": "score", "over": {"bins": 3}}, "a slope needs a metric that test"),
    (numbers(a=[1.0], b=[0.0]), {"metric": "score", **LOG}, "needs positive numbers, and score is not in made/a"),
])  # fmt: skip
def test_what_cannot_be_compared_says_why(runs, changes, message):
    assert_refused(re.escape(message), found, runs, **{"metric": "nll_per_token"} | changes)


@pytest.mark.parametrize(("scale", "reach"), [("plain", 16.0), ("log", np.log(88 / 24) - np.log(72 / 40))])
def test_seeds_on_one_point_of_a_grid_agree_no_better_than_its_steps(monkeypatch, scale, reach):
    """Five seeds of 80 and of 32, in steps of 16: either may be 8 more or less, the same in all seeds."""
    monkeypatch.setattr(module, "RESAMPLES", 2_000)
    lengths, steps = {"a": 80.0, "b": 32.0}, {"recl_all_step": [16.0] * 5}
    runs = [made(variant, {"recl_all_10": [length] * 5} | steps) for variant, length in lengths.items()]
    result = found(runs, metric="recl_all_10", scale=scale, relevant=1.5)
    assert result.values == pytest.approx([48.0 if scale == "plain" else np.log(2.5)] * 5)
    assert (result.draws == result.draws[0]).all()
    ends = np.quantile(result.draws[0], [0.0, 1.0])
    assert 0.8 * reach < ends[1] - ends[0] <= 2.0 * reach
    assert ends[0] > (30.0 if scale == "plain" else np.log(1.7))


def test_a_number_below_its_step_stays_positive():
    runs = [made(name, {"recl_all_10": [8.0, 8.0], "recl_all_step": [16.0, 16.0]}) for name in ("a", "b")]
    assert np.isfinite(found(runs, metric="recl_all_10", scale="log", relevant=1.5).draws).all()
