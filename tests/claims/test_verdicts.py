"""Verdicts of one comparison: the table of the two tests, for every kind of comparison."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.claims.made_runs import UNIT, decided, made, pair

SIX = tuple("abcdef")


def outcome(effect, spread=0.1, **changes):
    """Of an effect, by default with a standard error of 0.045, where 1 matters."""
    return decided(pair(effect, spread), **changes).lead


@pytest.mark.parametrize(("effect", "changes", "expected"), [
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
    (0.95, {"kind": "equal", "may_be": "greater"}, ("reproduced", "")),
    (1.2, {"kind": "equal", "may_be": "greater"}, ("reproduced", "")),
    (-1.05, {"kind": "equal", "may_be": "greater"}, ("inconclusive", "")),
    (-1.2, {"kind": "equal", "may_be": "greater"}, ("contradicted", "differs by more than matters")),
    (-1.2, {"kind": "equal", "may_be": "less"}, ("reproduced", "")),
    (1.2, {"kind": "equal", "may_be": "less"}, ("contradicted", "differs by more than matters")),
    (4.0, {"scale": "log", "relevant": 1.5}, ("reproduced", "")),
    (0.4, {"scale": "log", "relevant": 1.5}, ("contradicted", "real but too small to matter")),
    (0.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "no effect that matters")),
    (-2.0, {"scale": "log", "relevant": 1.5}, ("contradicted", "opposite")),
    (-2.0, {"scale": "log", "relevant": 1.5, "kind": "less"}, ("reproduced", "")),
    (2.0, {"variants": ("a",), "than": 4.0}, ("reproduced", "")),
    (2.0, {"variants": ("a",), "than": 7.0}, ("contradicted", "opposite")),
    # What every seed repeats is certain, such as a count of operations: its interval has no width.
    (2.0, {"spread": 0.0}, ("reproduced", "")),
    (1.0, {"spread": 0.0}, ("reproduced", "")),
    (0.5, {"spread": 0.0}, ("contradicted", "real but too small to matter")),
    (0.0, {"spread": 0.0}, ("contradicted", "no effect that matters")),
    (-1.0, {"spread": 0.0}, ("contradicted", "opposite")),
])  # fmt: skip
def test_the_table(effect, changes, expected):
    found = outcome(effect, **changes)
    assert (found.verdict, found.how) == expected
    assert "spread" not in changes or found.interval == pytest.approx((effect, effect))


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


def test_what_the_outcome_holds():
    found = decided([*pair(2.0)], paper=3.0)
    lead = found.lead
    low, high = stats.t.interval(0.95, 4, 2.0, 0.1 / math.sqrt(5))
    assert lead.interval == pytest.approx((low, high), abs=0.02)
    assert (lead.effect, lead.relevant, lead.paper) == (pytest.approx(2.0), 1.0, 3.0)
    assert lead.per_seed == pytest.approx(2.0 + 0.1 * UNIT)
    assert (lead.sides["a"], lead.sides["b"]) == (pytest.approx(6.0), pytest.approx(4.0))
    assert (lead.seeds, lead.n, lead.drawn_of, lead.deciding) == ((1, 2, 3, 4, 5), None, "", True)
    assert lead.tests.above == pytest.approx(stats.t.sf(2.0 / 0.1 * math.sqrt(5), 4))
    assert lead.tests.below == pytest.approx(stats.t.cdf(1.0 / 0.1 * math.sqrt(5), 4))


def test_on_the_log_scale_ratios_are_shown():
    lead = decided(pair(4.0), scale="log", relevant=1.5, paper=2.5).lead
    low, high = lead.interval
    assert (lead.relevant, lead.paper, lead.unit) == (1.5, 2.5, "")
    assert low < lead.effect < high
    assert lead.effect == pytest.approx(2.0, abs=0.01)
    assert lead.per_seed == pytest.approx((8.0 + 0.1 * UNIT) / 4.0)
