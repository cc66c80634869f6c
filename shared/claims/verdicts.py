"""From claims and runs to verdicts.

Every seed has one effect, positive where it agrees with the claim. Two one-sided tests, at 2.5 % each, corrected for
earlier attempts and by Holm's method over the primary comparisons of the paper, ask *a*: is the mean effect above 0?
*b*: is it below ``relevant``, the smallest that matters? *b*: contradicted. *a* and not *b*: reproduced, if the
estimate is at least ``relevant``, too. Otherwise: inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shared.claims import competence, schema
from shared.claims.attempts import History, Ledger, can_decide
from shared.claims.comparisons import Comparison, Correlation, Exact, Row, Sides, Trend
from shared.claims.effects import effects, scalars
from shared.claims.outcomes import SIDES, Confirmed, Decision, Evidence, Judged, Outcome, Tests, Verdict
from shared.claims.results import RunResults
from shared.claims.rules import ALPHA, CONFIRMING, FEWEST_SEEDS
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
BY_MATHEMATICS: Mapping[Verdict, Verdict] = {"reproduced": "verified", "contradicted": "refuted"}
OPEN = "real, whether it matters is open"


def decide(
    claims: schema.Claims, results: Results, scale: str, *, evidence: Mapping[str, Evidence] | None = None,
    changed: Mapping[str, tuple[str, ...]] | None = None, ledger: Ledger | None = None,
    untuned: Mapping[str, str] | None = None, confirming: Mapping[str, Sequence[int]] | None = None,
) -> list[Decision]:  # fmt: skip
    """Judge all claims of a paper.

    Args:
        claims: of the paper, at the scale.
        results: of all its variants, by name.
        scale: of the runs.
        evidence: variant to the kind of its data; None: all data are generated.
        changed: claim to what has changed since the plan was frozen; None: there is no plan.
        ledger: of earlier attempts; None: there were none.
        untuned: variant to what the search of its settings lacks; None: it is not known.
        confirming: claim to the seeds that are to confirm its verdict.

    Raises:
        ReplicationError: runs do not fit together, or lack a metric.
    """
    ledger = ledger or Ledger()
    known = {name: run.with_seeds(lambda seed: seed < CONFIRMING) for name, run in results.items()}
    drafts = [_compare_claim(claim, known, scale, ledger, evidence) for claim in claims.claims]
    _correct(drafts)
    decisions = []
    for claim, (history, rows) in zip(claims.claims, drafts, strict=True):
        judged = [_verdict_of(outcome) for outcome in rows]
        if rows:
            judged = [_unless_below(claims, *pair, known) for pair in zip(claim.rows(), judged, strict=True)]
        whole, parts = _judge(claims, claim, known, scale, judged, untuned)
        own = None if changed is None else changed.get(claim.id, ())
        decision = Decision(
            **vars(whole), claim=claim, scale=scale, outcomes=tuple(judged), parts=parts, changed=own, history=history
        )
        said, again = _confirmation(claim, decision, results, (confirming or {}).get(claim.id, ()))
        if said == "not confirmed" and again is not None:
            low, high = again.interval or (math.nan, math.nan)
            what = "it" if again.name == "primary" else f"'{again.name}'"
            reason = f"further seeds do not confirm {what}: {again.effect:.2f} [{low:.2f}, {high:.2f}] {again.unit}"
            decision = replace(decision, verdict="inconclusive", how="", reason=reason)
        decisions.append(replace(decision, evidence=_evidence(decision.lead, evidence), confirmed=said))
    return decisions


def _evidence(lead: Outcome | None, evidence: Mapping[str, Evidence] | None) -> Evidence | None:
    """The kind of data of the comparison that decides."""
    if lead is None:
        return None
    return "generated" if evidence is None else evidence[lead.variants[0].removesuffix("-ensemble")]


def _correct(drafts: Sequence[tuple[History, list[Outcome]]]) -> None:
    """Correct the p-values of the comparisons that decide claims of a paper, for earlier attempts and by Holm's method.

    Each test is corrected separately. At most one of the first two null hypotheses of a comparison is true, so the
    error rate is kept if each of the two tests gets half of it.
    """
    deciding = [
        (rows, at, row.tests, history.penalty)
        for history, rows in drafts
        for at, row in enumerate(rows)
        if row.deciding and row.tests is not None and can_decide(row.seeds)
    ]
    above, below, opposite = (
        holm([min(1.0, getattr(tests, name) * penalty) for *_, tests, penalty in deciding])
        for name in ("above", "below", "opposite")
    )
    for (rows, at, tests, _), p_above, p_below, p_opposite in zip(deciding, above, below, opposite, strict=True):
        corrected = replace(tests, above_holm=p_above, below_holm=p_below, opposite_holm=p_opposite)
        rows[at] = replace(rows[at], tests=corrected)


def _confirmation(
    claim: schema.Claim, decision: Decision, results: Results, seeds: Sequence[int]
) -> tuple[Confirmed, Outcome | None]:
    """Whether runs of further seeds, of another day or machine, by themselves decide the same, and what does not agree.

    All that decides is asked again: the primary comparison, and of further parts those that are decided.
    """
    lead, first = decision.lead, {outcome.name: outcome.verdict for outcome in decision.outcomes}
    if claim.primary is None or lead is None or "inconclusive" in (lead.verdict, decision.verdict):
        return "", None
    rows = [row for row in claim.deciding if not isinstance(row, Exact) and first[row.name] in SIDES]
    runs = [results[name] for row in rows for name in row.variants]
    ours = {_when(run, seed) for run in runs for seed in lead.seeds}
    if not seeds or any({*seeds} - {*run.seeds} or ours & {_when(run, seed) for seed in seeds} for run in runs):
        return "one run", None
    anew = {run.variant: run.with_seeds(seeds.__contains__) for run in runs}
    again = [_verdict_of(_compare(claim.id, row, anew, deciding=True)) for row in rows]
    failed = next((each for each in again if each.verdict != first[each.name]), None)
    return ("not confirmed" if failed else "confirmed"), failed


def _when(run: RunResults, seed: int) -> tuple[str, str]:
    """Machine and day of a run; runs without a record share none."""
    record = run.runs.get(seed, {})
    return str(record.get("cpu", run.variant)), str(record.get("finished", seed))[:10]


def _compare_claim(
    claim: schema.Claim, results: Results, scale: str, ledger: Ledger, evidence: Mapping[str, Evidence] | None
) -> tuple[History, list[Outcome]]:
    """What was tried before for a claim, and every row of it, without verdicts; none where nothing decides it here.

    Earlier effects count, too, but not of what was measured, times for instance: these are of one machine at one time.
    """
    if claim.undecided_at(scale) is not None:
        return ledger.history(claim.id, (), ()), []
    deciding = {id(row) for row in claim.deciding}
    rows = [_compare(claim.id, row, results, deciding=id(row) in deciding) for row in claim.rows()]
    first, of = rows[0], ledger.history(claim.id, rows[0].seeds, rows[0].per_seed, rows[0].relevant)
    if of.pool and claim.primary is not None and first.effect is not None and _evidence(first, evidence) != "measured":
        rows[0] = _compare(claim.id, claim.primary, results, deciding=True, earlier=of.pool)
    return of, rows


def _compare(
    claim_id: str, row: Row, results: Results, *, deciding: bool, earlier: Mapping[int, Sequence[float]] | None = None
) -> Outcome:
    variants = row.variants
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
    size = np.log if row.scale == "log" else np.asarray
    before = {seed: size(of) for seed, of in (earlier or {}).items()}
    # A seed that was run again is one seed still: it counts by the mean of its runs.
    again = [seed for seed in found.seeds if seed in before]
    values = np.array([
        np.mean([value, *before.get(seed, ())]) for seed, value in zip(found.seeds, found.values, strict=True)
    ])  # fmt: skip
    pool = [float(of.mean()) for seed, of in before.items() if seed not in again]
    draws = found.draws + (values - found.values)[:, None]
    estimate = over_seeds(values, draws, rng, found.drawn, pool)
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
        tests=_tests(row, estimate, found.repeats), pooled=len(pool), again=len(again),
    )  # fmt: skip


def _tests(row: Comparison, effect: Estimate, repeats: float) -> Tests:
    if isinstance(row, Sides) and row.kind == "equal":
        if row.may_be == "greater":
            return Tests(effect.p_at_most(-row.margin), effect.p_at_least(-row.margin))
        if row.may_be == "less":
            return Tests(effect.p_at_least(row.margin), effect.p_at_most(row.margin))
        within = max(effect.p_at_most(-row.margin), effect.p_at_least(row.margin))
        outside = min(effect.p_at_least(-row.margin), effect.p_at_most(row.margin))
        return Tests(within, min(1.0, 2.0 * outside))  # doubled, because the effect may lie outside on either side
    # Chance in the runs attenuates any correlation, and so the bound.
    bound = row.bound(repeats) if isinstance(row, Correlation) else row.margin
    matters = effect.value >= bound - 1e-9 * abs(bound)
    return Tests(effect.p_at_most(0.0), effect.p_at_least(bound), effect.p_at_least(0.0), matters=matters)


def _verdict_of(outcome: Outcome) -> Outcome:
    """The verdict of a comparison by its corrected p-values, or by its own where there are none.

    A correction can only change a verdict to inconclusive. Without this rule, an effect that is contradicted because it
    is too small would become reproduced if only its test against 0 passed the correction.
    """
    tests, level = outcome.tests, ALPHA / 2.0
    if tests is None:
        return outcome
    if not can_decide(outcome.seeds):
        few = f"{number_of(len(outcome.seeds), 'seed')}, and at least {FEWEST_SEEDS} decide"
        return replace(outcome, reason=few)
    alone, verdict = (_table(*(p <= level for p in ps)) for ps in ((tests.above, tests.below), tests.deciding[:2]))
    if alone == "reproduced" and not tests.matters:
        how = OPEN if verdict == "reproduced" else ""
        return replace(outcome, verdict="inconclusive", how=how, reason="the estimate is below what matters")
    if verdict != alone:
        after = "Holm's correction and that for earlier attempts"
        return replace(outcome, verdict="inconclusive", reason=f"{alone} by the tests alone, but not after {after}")
    return replace(outcome, verdict=verdict, how=_how(outcome.kind, tests, level) if verdict == "contradicted" else "")


def _unless_below(claims: schema.Claims, row: Row, outcome: Outcome, results: Results) -> Outcome:
    """A supporting comparison decides nothing either if a model that is meant to be good has not learned."""
    if outcome.deciding or outcome.effect is None or isinstance(row, Exact):
        return outcome
    runs = [results[name] for name in outcome.variants]
    check = competence.floor_check(row, competence.count_learned(claims.floors, runs, outcome.seeds), runs)
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


def _judge(
    claims: schema.Claims, claim: schema.Claim, results: Results, scale: str, rows: Sequence[Outcome],
    untuned: Mapping[str, str] | None,
) -> tuple[Judged, tuple[Judged, ...]]:  # fmt: skip
    """The verdict of a claim from those of its comparisons, and those of its parts."""
    primary = claim.primary
    first = [*rows[:1]] if primary is not None else [row for row in rows if row.deciding and row.kind == "exact"]
    if missing := [row.reason for row in first if not row.tested]:
        return Judged("not tested", "", "; ".join(dict.fromkeys(missing))), ()
    if not first:
        return Judged("not tested", "", claim.undecided_at(scale) or ""), ()
    if primary is None:
        failed = [row.name for row in first if row.verdict != "verified"]
        reason = f"does not hold: {', '.join(failed)}" if failed else "all identities hold"
        return Judged("refuted" if failed else "verified", "", reason), ()
    of = {outcome.name: (row, outcome) for row, outcome in zip(claim.rows(), rows, strict=True)}
    control = of[claim.control][1].verdict if claim.control in of else None
    judged = {
        name: _checked(claims, claim, row, outcome, results, control, untuned)
        for name, (row, outcome) in of.items()
        if outcome.deciding
    }
    whole, parts = judged[primary.name], list[Judged]()
    for part in claim.parts:
        none = Judged("not tested", "", part.not_tested or "no comparison of this scale")
        parts.append(replace(judged.get(part.by or "", none), says=part.says, by=part.by or ""))
    if claim.by_mathematics is not None:
        whole = replace(whole, verdict=BY_MATHEMATICS.get(whole.verdict, whole.verdict))
    return replace(whole, **_together(whole, parts)) if parts else whole, tuple(parts)


def _together(whole: Judged, parts: Sequence[Judged]) -> dict[str, Any]:
    """Verdict and reason of a claim that says several things: reproduced if all of them are, else in part."""
    verdicts = [{"verified": "reproduced", "refuted": "contradicted"}.get(part.verdict, part.verdict) for part in parts]
    if {*verdicts} == {"reproduced"}:
        return {}
    if "reproduced" in verdicts:
        return {"verdict": "in part", "how": "", "reason": "not all that the statement says is reproduced"}
    if "contradicted" in verdicts and whole.verdict != "contradicted":
        part = parts[verdicts.index("contradicted")]
        return {"verdict": "contradicted", "how": part.how, "reason": f"it is contradicted that {part.says}"}
    return {}


def _checked(
    claims: schema.Claims, claim: schema.Claim, row: Row, lead: Outcome, results: Results, control: str | None,
    untuned: Mapping[str, str] | None,
) -> Judged:  # fmt: skip
    """The verdict of a comparison that decides, unless a check fails."""
    if lead.effect is None or isinstance(row, Exact):
        return Judged(lead.verdict, lead.how, lead.reason)
    runs = [results[variant] for variant in lead.variants]
    counts = competence.count_learned(claims.floors, runs, lead.seeds)
    effect = math.log(lead.effect) if row.scale == "log" else lead.effect
    missing = lead.how in competence.MISSED or (row.kind, lead.verdict) == ("equal", "reproduced")
    checks = (
        competence.floor_check(row, counts, runs), competence.room_check(row, lead.how, lead.sides),
        competence.control_check(missing, claim.control, control),
        competence.tuning_check(row, lead.verdict, runs, claims.floors, untuned),
        competence.gap_check(row, lead.verdict, runs),
        competence.doubling_check(row, effect, lead.verdict, _doubled(claim.id, row, results)),
        competence.order_check(row, lead.repeats),
    )  # fmt: skip
    failed = [check.verdict for check in checks if check.passed == "no"]
    clauses = "; ".join(CLAUSES.get(each, each) for each in failed)
    if lead.verdict == "inconclusive" or not failed:
        return Judged(lead.verdict, lead.how, "; ".join(filter(None, (lead.reason, clauses))), checks, counts)
    reason = f"the effect by itself would be {lead.verdict}, but {clauses}"
    return Judged("inconclusive", failed[0], reason, checks, counts)


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
