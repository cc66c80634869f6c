"""From claims and runs to verdicts.

One rule for every kind of comparison: its effect has a 95 % interval, the claim names a region of effects.
Interval inside the region: reproduced; outside it: contradicted; across its border: inconclusive.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from shared.claims import schema
from shared.claims.results import RunResults
from shared.claims.sampling import sample, scalars
from shared.claims.statistics import RESAMPLES, Estimate, generator, holm, power_law
from shared.errors import ReplicationError
from shared.metrics.registry import measure

Verdict = Literal["reproduced", "contradicted", "inconclusive", "not tested"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Results = Mapping[str, RunResults]
Interval = tuple[float, float]
HEAD = (
    *("kind", "metric", "variants", "effect", "unit", "interval"),
    *("p_value", "p_holm", "seeds", "n", "variance", "token"),
)
"""What a claim's entry in claims.json repeats of its leading comparison."""
COUNTED = frozenset({"training_operations"})
"""Numbers that are counted, so that one run shows all there is to know."""


@dataclass(frozen=True)
class Outcome:
    """What one comparison came to.

    Attributes:
        effect: in ``unit``; positive means the first variant's value is the larger one. Of a number that is to be
            exact it is the number itself, of the seed that is furthest from the value.
        interval: 95 % interval, or None where nothing varies or nothing is known of how it varies.
        p_value: two-sided, against the border of what is claimed: of the test that the effect lies within it, or, where
            the verdict is ``contradicted``, of the test that it lies outside.
        p_holm: the same, corrected over all deciding comparisons of the paper.
        n: test examples; None for a number that is one per run.
        seeds: of the variant with the fewest.
        variance: what the interval covers: "examples+seeds", "examples" (one seed only), "seeds",
            "points" (of a fitted line) or "none"; "families" instead of "examples" that are drawn by these.
        paper: the paper's effect in the same unit.
        token: what the runs call that which likelihoods are per.
    """

    name: str
    kind: str
    verdict: Verdict
    metric: str
    unit: str
    variants: tuple[str, ...]
    deciding: bool
    reason: str = ""
    effect: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_holm: float | None = None
    n: int | None = None
    seeds: int = 0
    variance: str = "none"
    resamples: int = 0
    paper: float | None = None
    token: str = "token"


@dataclass(frozen=True)
class Decision:
    """The verdict on one claim at one scale, with what it rests on."""

    claim: schema.Claim
    scale: str
    verdict: Verdict
    reason: str
    outcomes: tuple[Outcome, ...]

    @property
    def lead(self) -> Outcome | None:
        """The first deciding comparison that was tested; its figures stand for the claim in overviews."""
        return next((o for o in self.outcomes if o.deciding and o.verdict != "not tested"), None)

    def to_json(self) -> dict[str, Any]:
        """The entry of claims.json: the verdict, the figures of the leading comparison, and all of them."""
        head = {key: getattr(self.lead, key) if self.lead else None for key in HEAD}
        entry = {"id": self.claim.id, "statement": self.claim.statement, "verdict": self.verdict}
        rows = [asdict(outcome) for outcome in self.outcomes]
        return entry | {"reason": self.reason, "scale": self.scale} | head | {"comparisons": rows}


def decide(claims: Sequence[schema.Claim], results: Results, scale: str) -> list[Decision]:
    """Judge every claim by the runs at one scale.

    Args:
        claims: of one paper.
        results: of all its variants, by name; a comparison with a variant that was not run is ``not tested``.
        scale: named in the decisions.

    Raises:
        ReplicationError: examples of compared variants are not the same, or a metric is missing.
    """
    outcomes = [
        _compare(claim.id, comparison, results, deciding=comparison in claim.deciding)
        for claim in claims
        for comparison in (*claim.deciding, *claim.also)
    ]
    tested = [i for i, outcome in enumerate(outcomes) if outcome.deciding and outcome.p_value is not None]
    corrected = holm([outcomes[index].p_value or 1.0 for index in tested])
    for index, p in zip(tested, corrected, strict=True):
        outcomes[index] = replace(outcomes[index], p_holm=p)
    remaining = iter(outcomes)
    return [_conclude(claim, scale, tuple(next(remaining) for _ in (*claim.deciding, *claim.also))) for claim in claims]


def _conclude(claim: schema.Claim, scale: str, outcomes: tuple[Outcome, ...]) -> Decision:
    if claim.not_tested is not None:
        return Decision(claim, scale, "not tested", claim.not_tested, outcomes)
    deciding = [outcome for outcome in outcomes if outcome.deciding]
    tested = [outcome for outcome in deciding if outcome.verdict != "not tested"]
    left_out = "; ".join(f"not tested: {o.name} ({o.reason})" for o in deciding if o.verdict == "not tested")
    if not tested:
        return Decision(claim, scale, "not tested", left_out, outcomes)
    counts = Counter(outcome.verdict for outcome in tested)
    verdict: Verdict = "inconclusive"
    if counts["contradicted"]:
        verdict = "contradicted"
    elif counts["reproduced"] == len(tested):
        verdict = "reproduced"
    said = ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS if counts[kind])
    reasons = [f"of {len(tested)} deciding comparison{'s' * (len(tested) > 1)}: {said}"]
    weak = [o.name for o in tested if o.verdict != "inconclusive" and (o.p_holm or 0.0) > 0.05]
    if weak:
        reasons.append(f"does not survive Holm's correction: {', '.join(weak)}")
    return Decision(claim, scale, verdict, "; ".join([*reasons, *([left_out] if left_out else [])]), outcomes)


def _compare(claim_id: str, comparison: schema.Comparison, results: Results, *, deciding: bool) -> Outcome:
    variants = comparison.compared()
    outcome = Outcome(
        name=comparison.name,
        kind=comparison.kind,
        verdict="not tested",
        metric=comparison.metric,
        unit=_unit(comparison),
        variants=variants,
        deciding=deciding,
        paper=comparison.paper,
    )
    for variant in variants:
        if variant not in results:
            return replace(outcome, reason=f"{variant} was not run at this scale")
        if results[variant].not_run is not None:
            return replace(outcome, reason=f"{variant}: {results[variant].not_run}")
    runs = [results[variant] for variant in variants]
    outcome = replace(outcome, seeds=min(len(run.seeds) for run in runs), token=runs[0].token)
    if isinstance(comparison, schema.Exact):
        return _exact(comparison, runs[0], outcome)
    rng = generator(claim_id, comparison.name)
    if isinstance(comparison, schema.Exponent):
        return _judge(comparison, _exponent(comparison, runs[0], rng), replace(outcome, variance="points"))
    sampled = sample(comparison, runs, rng)
    outcome = replace(outcome, n=sampled.n, variance=sampled.variance, resamples=RESAMPLES)
    if isinstance(comparison, schema.Ladder):
        steps = [upper - lower for lower, upper in pairwise(sampled.estimates)]
        return _weakest([_judge(comparison, step, outcome) for step in steps])
    return _judge(comparison, _effect(comparison, sampled.estimates), outcome)


def _effect(comparison: schema.Comparison, estimates: Sequence[Estimate]) -> Estimate:
    if isinstance(comparison, schema.Ratio):
        return estimates[0] / estimates[1]
    if isinstance(comparison, schema.Slope) and len(estimates) == 2:
        return estimates[0] - comparison.share * estimates[1]
    return estimates[0] - estimates[1] if len(estimates) == 2 else estimates[0]


def _judge(comparison: schema.Comparison, effect: Estimate, outcome: Outcome) -> Outcome:
    """Lay the interval of the effect against the claimed region."""
    if outcome.variance == "none" and comparison.metric not in COUNTED:
        return replace(
            outcome,
            verdict="inconclusive",
            effect=effect.value,
            reason="one run cannot show how results vary",
        )
    (low, high), (claim_low, claim_high) = effect.interval(), comparison.claimed()
    if math.isnan(low) or math.isnan(high):
        raise ReplicationError(
            f"'{comparison.name}': {comparison.metric} is undefined on some resamples of {outcome.n} "
            "test examples; use more examples or a wider 'where'."
        )
    verdict: Verdict = "inconclusive"
    if claim_low < low and high < claim_high:
        verdict = "reproduced"
    elif high < claim_low or low > claim_high:
        verdict = "contradicted"
    test = effect.p_value_outside if verdict == "contradicted" else effect.p_value
    p_value = test((claim_low, claim_high))
    return replace(outcome, verdict=verdict, effect=effect.value, interval=(low, high), p_value=p_value)


def _weakest(steps: Sequence[Outcome]) -> Outcome:
    """A ladder stands on its weakest step: a contradicted one if any, else the one nearest to none."""
    order = {"contradicted": 0, "inconclusive": 1, "reproduced": 2}
    return min(steps, key=lambda step: (order[step.verdict], step.interval or (0.0, 0.0)))


def _exact(comparison: schema.Exact, run: RunResults, outcome: Outcome) -> Outcome:
    numbers = scalars(run, comparison.metric)
    worst = float(numbers[np.abs(numbers - comparison.value).argmax()])
    equal = abs(worst - comparison.value) <= comparison.tolerance
    return replace(outcome, verdict="reproduced" if equal else "contradicted", effect=worst)


def _exponent(comparison: schema.Exponent, run: RunResults, rng: np.random.Generator) -> Estimate:
    y = np.concatenate([scalars(run, name) for name in comparison.points.values()])
    x = np.repeat(np.array(list(comparison.points)), len(run.seeds))
    if (y <= 0.0).any():
        raise ReplicationError(f"'{comparison.name}': an exponent needs positive numbers in {run.folder}.")
    return power_law(x, y, rng)


def _unit(comparison: schema.Comparison) -> str:
    unit = measure(comparison.metric).unit
    if isinstance(comparison, schema.Slope):
        return f"{unit} per {comparison.per}".strip()
    without = schema.Ratio | schema.Exponent | schema.RankCorrelation
    return "" if isinstance(comparison, without) else unit
