"""Verdicts of one comparison: the table of the two tests, for every kind of comparison."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.claims.made_runs import UNIT, decided, made, pair, with_losses

SIX = tuple("abcdef")


def of(value, **changes):
    """(verdict, how) of an effect with a standard error of 0.045, where 1 matters."""
    found = decided(pair(value), **changes).lead
    return found.verdict, found.how


@pytest.mark.parametrize(
    ("effect", "changes", "expected"),
    [
        (2.0, {}, ("reproduced", "")),
        (1.05, {}, ("reproduced", "")),
        (0.95, {}, ("inconclusive", "real, whether it matters is open")),  # above 0, and not clearly below 1
        (0.5, {}, ("contradicted", "real but too small to matter")),
        (0.0, {}, ("contradicted", "no effect that matters")),
        (-0.5, {}, ("contradicted", "opposite")),
        (-2.0, {}, ("contradicted", "opposite")),
        (-2.0, {"kind": "less"}, ("reproduced", "")),
        (2.0, {"kind": "less"}, ("contradicted", "opposite")),
        (0.05, {"relevant": 0.1}, ("inconclusive", "")),
        (0.0, {"kind": "equal"}, ("reproduced", "")),
        (0.85, {"kind": "equal"}, ("reproduced", "")),
        (-0.85, {"kind": "equal"}, ("reproduced", "")),
        (0.95, {"kind": "equal"}, ("inconclusive", "")),
        (-1.05, {"kind": "equal"}, ("inconclusive", "")),
        (1.2, {"kind": "equal"}, ("contradicted", "differs by more than matters")),
        (-1.2, {"kind": "equal"}, ("contradicted", "differs by more than matters")),
        (4.0, {"scale": "log", "relevant": 1.5}, ("reproduced", "")),
        (0.4, {"scale": "log", "relevant": 1.5}, ("contradicted", "real but too small to matter")),
        (0.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "no effect that matters")),
        (-2.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "opposite")),
        (-2.0, {"scale": "log", "relevant": 1.5, "kind": "less"}, ("reproduced", "")),
        (2.0, {"variants": ("a",), "than": 4.0}, ("reproduced", "")),
        (2.0, {"variants": ("a",), "than": 7.0}, ("contradicted", "opposite")),
    ],
)
def test_the_table(effect, changes, expected):
    assert of(effect, **changes) == expected


def test_an_effect_that_may_be_none_or_matter_is_inconclusive():
    found = decided(pair(0.5, 1.0))
    low, high = found.lead.interval
    assert low < 0.0 < 1.0 < high
    assert (found.verdict, found.how, found.reason) == ("inconclusive", "", "5 seeds")


@pytest.mark.parametrize("kind", ["rises", "falls"])
def test_a_trend_is_judged_as_a_whole(kind):
    """One weak step does not decide."""
    steps = {"a": 1.0, "b": 4.0, "c": 3.9, "d": 7.0}
    runs = [made(name, {"score": value + 0.1 * UNIT * i}) for i, (name, value) in enumerate(steps.items())]
    found = decided(runs, kind=kind, variants=tuple(steps), relevant=0.5)
    assert found.verdict == ("reproduced" if kind == "rises" else "contradicted")
    assert abs(found.lead.effect) == pytest.approx(np.polyfit(range(4), list(steps.values()), 1)[0])


def ranked(noise, direction="positive", **changes):
    rng = np.random.default_rng(8)
    runs = []
    for i, name in enumerate(SIX):
        score = i + noise * rng.normal(size=8)
        other = (i if direction == "positive" else -i) + noise * rng.normal(size=8)
        runs.append(made(name, {"score": score, "other": other}))
    row = {"kind": "correlation", "variants": SIX, "other": "other", "relevant": 0.3, "sign": direction} | changes
    return decided(runs, **row)


def test_a_correlation_is_judged_over_the_seeds():
    assert ranked(0.3).verdict == "reproduced"
    assert ranked(0.3, "negative").verdict == "reproduced"
    assert ranked(0.3, "negative", sign="positive").verdict == "contradicted"
    assert ranked(0.3, "negative", sign="positive").how == "opposite"
    found = ranked(0.3, than=0.5)
    assert (found.verdict, found.lead.unit) == ("reproduced", "")
    assert found.lead.effect == pytest.approx(ranked(0.3).lead.effect - 0.5)


def test_a_correlation_that_is_undefined_in_a_seed_says_so():
    runs = [made(name, {"score": i + UNIT, "other": np.ones(5)}) for i, name in enumerate(SIX)]
    found = decided(runs, kind="correlation", variants=SIX, other="other", relevant=0.3)
    assert (found.verdict, found.lead.effect) == ("inconclusive", None)
    assert found.reason == "score or other is undefined in seed 1, 2, 3, 4, 5"


@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_fewer_than_five_seeds_never_decide(seeds):
    found = decided(pair(50.0, 0.01, seeds=UNIT[:seeds]))
    word = "seed" if seeds == 1 else "seeds"
    assert (found.verdict, found.reason) == ("inconclusive", f"{seeds} {word}, and at least 5 decide")
    assert (found.lead.interval is None) == (seeds == 1)


def test_only_seeds_that_both_sides_have_count():
    first, second = pair(50.0, 0.01)
    fewer = replace(second, metrics={seed: second.metrics[seed] for seed in (1, 2, 3, 4)})
    found = decided([first, fewer])
    assert (found.verdict, found.lead.seeds) == ("inconclusive", (1, 2, 3, 4))


def test_what_the_outcome_holds():
    found = decided([*pair(2.0)], paper=3.0)
    lead = found.lead
    low, high = stats.t.interval(0.95, 4, 2.0, 0.1 / math.sqrt(5))
    assert lead.interval == pytest.approx((low, high), abs=0.02)
    assert (lead.effect, lead.relevant, lead.paper) == (pytest.approx(2.0), 1.0, 3.0)
    assert lead.per_seed == pytest.approx(2.0 + 0.1 * UNIT)
    assert (lead.sides["a"], lead.sides["b"]) == (pytest.approx(6.0), pytest.approx(4.0))
    assert (lead.seeds, lead.n, lead.drawn_of, lead.deciding) == ((1, 2, 3, 4, 5), None, "", True)
    assert (lead.tests.above, lead.tests.below) == (
        pytest.approx(stats.t.sf(2.0 / 0.1 * math.sqrt(5), 4)),
        pytest.approx(stats.t.cdf(1.0 / 0.1 * math.sqrt(5), 4)),
    )


def test_on_the_log_scale_ratios_are_shown():
    lead = decided(pair(4.0), scale="log", relevant=1.5, paper=2.5).lead
    low, high = lead.interval
    assert (lead.relevant, lead.paper, lead.unit) == (1.5, 2.5, "")
    assert low < lead.effect < high
    assert lead.effect == pytest.approx(2.0, abs=0.01)
    assert lead.per_seed == pytest.approx((8.0 + 0.1 * UNIT) / 4.0)


def test_examples_widen_the_interval_over_seeds():
    rng = np.random.default_rng(2)
    hard = rng.normal(size=60)
    first, second = 1.0 + hard + 0.01 * UNIT[:, None], 3.0 + 0.01 * UNIT[:, None] + 0.0 * hard
    runs = [with_losses("a", first), with_losses("b", second)]
    with_examples = decided(runs, kind="less", metric="nll_per_token").lead
    low, high = with_examples.interval
    assert (with_examples.n, with_examples.drawn_of, with_examples.unit) == (60, "examples", "nats")
    assert high - low == pytest.approx(2 * 2.0 * hard.std() / math.sqrt(60), rel=0.15)


@pytest.mark.parametrize(
    ("effect", "verdict", "how"),
    [
        (2.0, "reproduced", ""),
        (1.0, "reproduced", ""),
        (0.5, "contradicted", "real but too small to matter"),
        (0.0, "contradicted", "no effect that matters"),
        (-1.0, "contradicted", "opposite"),
    ],
)
def test_a_measurement_that_every_seed_repeats_is_certain(effect, verdict, how):
    """Such as a count of operations: its interval has no width."""
    found = decided(pair(effect, 0.0)).lead
    assert (found.verdict, found.how) == (verdict, how)
    assert found.interval == (pytest.approx(effect), pytest.approx(effect))
