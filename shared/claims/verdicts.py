"""From claims and runs to verdicts.

Every seed has one effect, positive where it agrees with the claim. Two one-sided tests, at 2.5 % each, corrected by
Holm's method over the primary comparisons of the paper, ask *a*: is the mean effect above 0? *b*: is it below
``relevant``, the smallest that matters? *b*: contradicted. *a* and not *b*: reproduced. Neither: inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shared.claims import schema
from shared.claims.comparisons import Comparison, Correlation, Exact, Row, Sides, Trend
from shared.claims.competence import (
    Check,
    count_learned,
    doubling_check,
    floor_check,
    gap_check,
    order_check,
    room_check,
)
from shared.claims.effects import effects, scalars
from shared.claims.outcomes import Decision, Evidence, Outcome, Tests, Verdict
from shared.claims.results import RunResults
from shared.claims.rules import ALPHA, FEWEST_SEEDS
from shared.claims.statistics import Estimate, generator, holm, over_seeds
from shared.claims.words import number_of
from shared.metrics.quantities import Array
from shared.metrics.registry import measure

Results = Mapping[str, RunResults]
CLAUSES = {
    "still closing": "the gap between the sides was still closing when training ended",
    "depends on the budget": "it depends on the budget",
}
"""Verdicts of checks that failed, as clauses of a sentence; the others are clauses already."""


def decide(
    claims: schema.Claims,
    results: Results,
    scale: str,
    *,
    evidence: Mapping[str, Evidence] | None = None,
    changed: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Decision]:
    """Judge all claims of a paper.

    Args:
        claims: of the paper, at the scale.
        results: of all its variants, by name.
        scale: of the runs.
        evidence: variant to the kind of its data; None: all data are generated.
        changed: claim to what has changed since the plan was frozen; None: there is no plan.

    Raises:
        ReplicationError: runs do not fit together, or lack a metric.
    """
    level = ALPHA / 2.0 / max(1, len(claims.looks))
    drafts = [_compare_claim(claim, results, scale) for claim in claims.claims]
    _correct(drafts)
    decisions = []
    for claim, rows in zip(claims.claims, drafts, strict=True):
        judged = [_verdict_of(outcome, level) for outcome in rows]
        if rows:
            judged = [_unless_below(claims, *pair, results) for pair in zip(claim.rows(), judged, strict=True)]
        decision = _decision(claims, claim, results, scale, judged)
        of = _evidence(decision.lead, evidence)
        own = None if changed is None else changed.get(claim.id, ())
        decisions.append(replace(decision, evidence=of, changed=own))
    return decisions


def _evidence(lead: Outcome | None, evidence: Mapping[str, Evidence] | None) -> Evidence | None:
    """The kind of data of the comparison that decides."""
    if lead is None:
        return None
    return "generated" if evidence is None else evidence[lead.variants[0].removesuffix("-ensemble")]


def _correct(drafts: Sequence[list[Outcome]]) -> None:
    """Correct the p-values of the primary comparisons of a paper, which are the first rows of their claims.

    Each test is corrected separately. At most one of the first two null hypotheses of a comparison is true, so the
    error rate is kept if each of the two tests gets half of it.
    """
    primary = [
        (rows, tests)
        for rows in drafts
        if rows and rows[0].deciding and (tests := rows[0].tests) is not None and len(rows[0].seeds) >= FEWEST_SEEDS
    ]
    above, below, opposite = (
        holm([getattr(tests, name) for _, tests in primary]) for name in ("above", "below", "opposite")
    )
    for (rows, tests), p_above, p_below, p_opposite in zip(primary, above, below, opposite, strict=True):
        corrected = replace(tests, above_holm=p_above, below_holm=p_below, opposite_holm=p_opposite)
        rows[0] = replace(rows[0], tests=corrected)


def _compare_claim(claim: schema.Claim, results: Results, scale: str) -> list[Outcome]:
    """Every row of a claim, without verdicts, those that decide first; none where nothing decides at this scale."""
    if claim.undecided_at(scale) is not None:
        return []
    deciding = {id(row) for row in (claim.primary, *claim.identities)}
    return [_compare(claim.id, row, results, deciding=id(row) in deciding) for row in claim.rows()]


def _compare(claim_id: str, row: Row, results: Results, *, deciding: bool) -> Outcome:
    variants = row.compared()
    outcome = Outcome(
        name=row.name, kind=row.kind, verdict="not tested", metric=row.metric, unit=_unit(row), variants=variants,
        deciding=deciding,
    )  # fmt: skip
    for variant in variants:
        if variant not in results:
            return replace(outcome, reason=f"{variant} was not run at this scale")
        if (reason := results[variant].not_run) is not None:
            return replace(outcome, reason=f"{variant}: {reason}")
    runs = [results[variant] for variant in variants]
    if isinstance(row, Exact):
        return _exact(row, runs[0], outcome)
    rng = generator(claim_id, row.name)
    found = effects(row, runs, rng)
    estimate = over_seeds(found.values, found.draws, rng, found.drawn)
    low, high = estimate.interval()
    if math.isnan(low + high):
        undefined = [str(seed) for seed, value in zip(found.seeds, found.values, strict=True) if math.isnan(value)]
        where = f"in seed {', '.join(undefined)}" if undefined else "on some resamples of the test examples"
        reason = f"{' or '.join(row.metrics())} is undefined {where}"
        return replace(outcome, verdict="inconclusive", reason=reason, seeds=found.seeds, n=found.n)
    return replace(
        outcome, verdict="inconclusive", scale=row.scale, base=_base(row), effect=row.shown(estimate.value),
        relevant=row.relevant, interval=(row.shown(low), row.shown(high)) if len(found.seeds) > 1 else None,
        seeds=found.seeds, per_seed=tuple(row.shown(float(value)) for value in found.values), sides=found.sides,
        n=found.n, drawn_of=found.drawn_of, repeats=found.repeats, paper=row.paper, token=runs[0].token,
        tests=_tests(row, estimate, found.repeats),
    )  # fmt: skip


def _tests(row: Comparison, effect: Estimate, repeats: float) -> Tests:
    if isinstance(row, Correlation):  # chance in the runs attenuates any correlation, and so the bound
        bound = row.bound(repeats)
        return Tests(effect.p_at_most(0.0), effect.p_at_least(bound), effect.p_at_least(0.0))
    if isinstance(row, Sides) and row.kind == "equal":
        within = max(effect.p_at_most(-row.margin), effect.p_at_least(row.margin))
        outside = min(effect.p_at_least(-row.margin), effect.p_at_most(row.margin))
        return Tests(within, min(1.0, 2.0 * outside))  # doubled, because the effect may lie outside on either side
    return Tests(effect.p_at_most(0.0), effect.p_at_least(row.margin), effect.p_at_least(0.0))


def _verdict_of(outcome: Outcome, level: float) -> Outcome:
    """The verdict of a comparison by its corrected p-values, or by its own where there are none.

    A correction can only change a verdict to inconclusive. Without this rule, an effect that is contradicted because it
    is too small would become reproduced if only its test against 0 passed the correction.
    """
    tests = outcome.tests
    if tests is None:
        return outcome
    if len(outcome.seeds) < FEWEST_SEEDS:
        few = f"{number_of(len(outcome.seeds), 'seed')}, and at least {FEWEST_SEEDS} decide"
        return replace(outcome, reason=few)
    plain = tests.above, tests.below
    alone, looked, verdict = (
        _table(*(p <= bound for p in ps))
        for bound, ps in ((ALPHA / 2.0, plain), (level, plain), (level, tests.deciding[:2]))
    )
    if verdict == alone:
        return replace(
            outcome, verdict=verdict, how=_how(outcome.kind, tests, level) if verdict == "contradicted" else ""
        )
    correction = "Holm's correction" if looked == alone else "the correction for the looks of the plan"
    return replace(outcome, verdict="inconclusive", reason=f"{alone} by the tests alone, but not after {correction}")


def _unless_below(claims: schema.Claims, row: Row, outcome: Outcome, results: Results) -> Outcome:
    """A supporting comparison decides nothing either if a model that is meant to be good has not learned."""
    if outcome.deciding or outcome.effect is None or isinstance(row, Exact):
        return outcome
    runs = [results[name] for name in outcome.variants]
    check = floor_check(row, count_learned(claims.floors, runs, outcome.seeds), runs)
    if check.passed != "no":
        return outcome
    return replace(outcome, verdict="inconclusive", how="", reason=check.verdict)


def _table(a: bool, b: bool) -> Verdict:
    """The verdict of the two tests; an effect below ``relevant`` is contradicted even if it is above 0."""
    return "contradicted" if b else "reproduced" if a else "inconclusive"


def _how(kind: str, tests: Tests, level: float) -> str:
    """The kind of a contradiction."""
    if kind == "equal":
        return "differs by more than matters"
    above, _, opposite = tests.deciding
    if opposite <= level:
        return "opposite"
    return "real but too small to matter" if above <= level else "no effect that matters"


def _decision(
    claims: schema.Claims, claim: schema.Claim, results: Results, scale: str, rows: Sequence[Outcome]
) -> Decision:
    """The verdict of a claim from those of its comparisons."""
    outcomes = tuple(rows)
    leading = [row for row in rows if row.deciding]
    if not leading:
        return Decision(claim, scale, "not tested", "", claim.undecided_at(scale) or "", outcomes)
    if missing := [row.reason for row in leading if not row.tested]:
        return Decision(claim, scale, "not tested", "", "; ".join(dict.fromkeys(missing)), outcomes)
    if claim.identities:
        failed = [row.name for row in leading if row.verdict != "verified"]
        reason = f"does not hold: {', '.join(failed)}" if failed else "all identities hold"
        return Decision(claim, scale, "refuted" if failed else "verified", "", reason, outcomes)
    primary = claim.primary
    assert primary is not None, "a claim without identities that is decided has a primary comparison"
    lead, runs = rows[0], [results[variant] for variant in rows[0].variants]
    if lead.effect is None:
        return Decision(claim, scale, lead.verdict, "", lead.reason, outcomes)
    looked = Check("looks", "yes", "")
    if claims.looks and len(lead.seeds) not in claims.looks:
        seeds = number_of(len(lead.seeds), "seed is", "seeds are")
        looked = Check("looks", "no", "", f"{seeds} none of the looks of the plan")
    counts = count_learned(claims.floors, runs, lead.seeds)
    effect = math.log(lead.effect) if primary.scale == "log" else lead.effect
    checks = (
        floor_check(primary, counts, runs), room_check(primary, lead.how, lead.sides),
        gap_check(primary, lead.verdict, runs),
        doubling_check(primary, effect, lead.verdict, _doubled(claim.id, primary, results)),
        order_check(primary, lead.repeats),
    )  # fmt: skip
    failed = [check.verdict for check in (looked, *checks) if check.passed == "no"]
    if lead.verdict == "inconclusive" or not failed:
        reason = lead.reason or number_of(len(lead.seeds), "seed")
        return Decision(claim, scale, lead.verdict, lead.how, reason, outcomes, None, checks, counts)
    clauses = "; ".join(CLAUSES.get(each, each) for each in failed)
    reason = f"the effect by itself would be {lead.verdict}, but {clauses}"
    return Decision(claim, scale, "inconclusive", failed[0], reason, outcomes, None, checks, counts)


def _doubled(claim_id: str, row: Comparison, results: Results) -> Array | None:
    """The effect of every seed with twice the updates, on the scale that it is computed on; None where it was not."""
    runs = [results[name] for name in row.doubled if name in results and results[name].not_run is None]
    if row.learned is not None or not row.doubled or len(runs) < len(row.doubled):
        return None
    return effects(row, runs, generator(claim_id, "doubled"), resamples=0).values


def _exact(row: Exact, run: RunResults, outcome: Outcome) -> Outcome:
    numbers = [float(number) for number in scalars(run, row.metric)]
    target = row.value if row.value is not None else -math.inf
    worst = max(numbers, key=lambda number: abs(number - target) if math.isfinite(target) else number)
    return replace(
        outcome, verdict="verified" if all(map(row.holds, numbers)) else "refuted", effect=worst, seeds=run.seeds,
        per_seed=tuple(numbers),
    )  # fmt: skip


def _base(row: Comparison) -> str:
    """What an effect is counted from, where that is a number other than 0."""
    sides = {"greater": "above", "correlation": "above", "less": "below"}
    if isinstance(row, Trend) or not row.than or row.scale == "log" or row.kind not in sides:
        return ""
    return f"{sides[row.kind]} {row.than:g}"


def _unit(row: Row) -> str:
    if isinstance(row, Correlation) or (not isinstance(row, Exact) and row.scale == "log"):
        return ""
    unit = measure(row.metric).unit
    if isinstance(row, Exact):
        return unit
    unit = "points" if unit == "%" else unit
    if row.over is not None:
        return f"{unit} per {row.over.per}".strip()
    return unit if isinstance(row, Sides) else f"{unit} per step".strip()
