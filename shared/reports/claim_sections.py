"""What a report says of each claim: what was compared and found, how strong that is, and what lies behind it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from shared.claims.comparisons import Comparison, Condition, Correlation, Exact, Row, Sides
from shared.claims.outcomes import Decision, Outcome
from shared.claims.results import RunResults
from shared.claims.schema import Claim, Claims
from shared.metrics.registry import measure
from shared.reports.document import (
    MINUS,
    SPACE,
    Badge,
    Block,
    Bullets,
    Code,
    Details,
    Heading,
    Inline,
    Paragraph,
    Strong,
    Table,
    Text,
    plain,
    typeset,
)
from shared.reports.seed_figures import seed_figure
from shared.reports.studies import number
from shared.reports.verdicts import (
    amount,
    effect_text,
    evidence_text,
    matters,
    metric_title,
    p_text,
    seeds_text,
    value_text,
    verdict_text,
    with_unit,
)

Results = Mapping[str, RunResults]
CHECKS = {
    "floor": "Learned",
    "room": "Room for an effect",
    "gap": "Gap between the sides",
    "doubling": "Twice the updates",
}
SOURCES = {
    "C:paper": "",
    "C:code": " (by its authors' code)",
    "C:note": " (as others cite it)",
    "D": " (derived here from its figures)",
    "M": " (quoted from memory)",
}
PASSED = {"yes": "", "no": "failed: ", "not asked": "not checked: "}
COLUMNS = (
    *("Comparison", "As measured", "Variants", "Measure", "Effect, 95 % interval", "Matters from", "In the paper"),
    *("p above 0 (Holm)", "p below what matters (Holm)", "Seeds", "Test examples"),
)


def claim_sections(
    decisions: Sequence[Decision], claims: Claims, results: Results, folder: Path, *, larger: tuple[str, Claims] | None
) -> list[Block]:
    """A section for every claim; pictures are drawn into ``folder``.

    Args:
        decisions: on the claims.
        claims: of the paper, at the scale.
        results: of all variants.
        folder: of figures.
        larger: the next larger scale, and the claims there; None of the largest and of one that decides nothing.
    """
    at_larger = {} if larger is None else {claim.id: claim for claim in larger[1].claims}
    blocks: list[Block] = [Heading("Claim by claim")]
    for decision in decisions:
        claim, lead = decision.claim, decision.lead
        blocks += [
            Heading((f"{claim.id}: ", *_parts(verdict_text(decision.to_json()))), level=3),
            Paragraph((Strong(claim.statement), f" ({claim.where})")),
            Paragraph(f"The paper reports: {claim.in_paper.text}{SOURCES[claim.in_paper.source]}."),
        ]
        if claim.primary is not None and lead is not None:
            blocks.append(Paragraph(_claimed(claim.primary, lead, results)))
            if lead.effect is not None:
                blocks.append(Paragraph(_found(claim.primary, lead)))
                blocks.append(seed_figure(claim, lead, claims.floors, results, folder / f"seeds_{claim.id}.png"))
        points = _strength(decision)
        if larger is not None and decision.verdict in ("inconclusive", "not tested"):
            points += _planned(at_larger[claim.id], larger[0], decision.reason)
        blocks.append(Bullets(points))
        blocks += _folded(decision, results)
    return blocks


def _claimed(row: Comparison, lead: Outcome, results: Results) -> Text:
    """What was compared, on which task, and what the claim expects of it."""
    title = spoken(row.metric, lead.token)
    named: list[Inline] = _listed([Code(name) for name in lead.variants])
    task = results[lead.variants[0]].task
    said: list[Inline] = ["On the task ", Code(task), f"{_restriction(row.where)}, the claim expects that "]
    if isinstance(row, Sides):
        other = named[-1] if row.than is None else typeset(f"{row.than:g}")
        said += [named[0], f" {_has(row, title)} {'as' if row.kind == 'equal' else 'than'} ", other]
    elif isinstance(row, Correlation):
        also = spoken(row.other, lead.token)
        rises = "rises" if row.direction == "positive" else "falls"
        said += [f"{title} rises and {also} {rises} together over ", *named]
        said.append(f": that Spearman's correlation is above {typeset(f'{row.than:g}')}")
    else:
        said += [f"{title} {row.kind} along ", *named]
    return (*said, ".")


def _has(row: Sides, title: str) -> str:
    if row.over is None:
        return f"has { ({'greater': 'a higher', 'less': 'a lower', 'equal': 'the same'}[row.kind]) } {title}"
    which = {
        "greater": "loses less (or gains more)",
        "less": "gains less (or loses more)",
        "equal": "changes as much in",
    }
    return f"{which[row.kind]} {title} per {row.over.per}"


def _found(row: Comparison, lead: Outcome) -> Text:
    """The means and the effect, the paper's beside it if it is the same quantity, and from where on one matters."""
    outcome = asdict(lead)
    said: list[Inline] = [f"Mean over {seeds_text(len(lead.seeds))}: "]
    for place, (variant, value) in enumerate(lead.sides.items()):
        said += [", " if place else "", Code(variant), f"{SPACE}{value_text(lead.metric, value)}"]
    agrees = "the first is higher" if lead.kind == "equal" else "it agrees with the claim"
    label = "Effect"
    if isinstance(row, Correlation):
        label = "Correlation" + (f" minus {typeset(f'{row.than:g}')}" if row.than else "")
    said += [f". {label}: ", Strong(effect_text(outcome))]
    said.append(f", {'above 1' if lead.scale == 'log' else 'positive'} where {agrees}")
    if lead.paper is not None:
        said.append(f"; in the paper: {with_unit(amount(outcome, lead.paper), outcome)}")
    because = (row.because or "").rstrip(". ")
    return (*said, f". An effect matters from {matters(outcome)} on: {because}.")


def _strength(decision: Decision) -> list[Text]:
    lead, points = decision.lead, list[Text]()
    if (why := _why(decision)) is not None:
        points.append((Strong("Why:"), f" {why}."))
    if lead is not None and lead.kind != "exact":
        n = "" if lead.n is None else f", {plain(lead.n, 0)} test examples"
        said = f"{evidence_text(decision.to_json(), asdict(lead))}{n}"
        if decision.supporting:
            said += f"; {decision.agreeing} of {len(decision.supporting)} supporting comparisons agree"
        points.append((Strong("Strength:"), f" {said}."))
        points += _tests(lead)
    points += [
        (Strong(f"{CHECKS[check.name]}:"), f" {PASSED[check.passed]}{_with_minus(check.said)}.")
        for check in decision.checks
        if check.name != "room" or check.passed != "not asked"
    ]
    if decision.claim.different_here:
        points.append((Strong("Different here:"), f" {decision.claim.different_here}"))
    if lead is not None:
        points.append((Strong("Plan:"), f" {_since_the_plan(decision.changed)}."))
    return points


def _planned(claim: Claim, scale: str, said: str) -> list[Text]:
    """The comparison that decides a claim at a larger scale, or the reason why none does unless already ``said``."""
    reason = claim.undecided_at(scale)
    if reason is not None:
        return [] if reason == said else [(Strong(f"Not decided at {scale}, either:"), f" {reason.rstrip('. ')}.")]
    if claim.primary is None:
        return []
    measures = " and ".join(metric_title(metric) for metric in claim.primary.metrics())
    variants = _listed([Code(name) for name in claim.primary.compared()])
    return [(Strong(f"Planned at {scale}:"), f" {measures} of ", *variants, ".")]


def _with_minus(said: str) -> str:
    """A sentence with true minus signs; hyphens within names stay."""
    return re.sub(r"(?<!\S)-(?=\d)", MINUS, said)


def _why(decision: Decision) -> str | None:
    """The reason of a verdict, if the tests alone do not explain it."""
    lead = decision.lead
    if decision.verdict in ("reproduced", "contradicted"):
        return None
    if decision.verdict == "inconclusive" and lead is not None and not (lead.reason or decision.how):
        return "the interval allows effects that matter and effects that do not agree with the claim"
    return decision.reason


def _tests(lead: Outcome) -> list[Text]:
    """The two tests that decide, in words; the corrected p-values count."""
    tests = lead.tests
    if tests is None:
        return []
    size = matters(asdict(lead))
    if lead.repeats < 1.0:
        size += f" (times {lead.repeats:.2f}, as chance in the runs makes all correlations smaller)"
    first, second = f"is above {'1' if lead.scale == 'log' else '0'}", f"is below {size}"
    if lead.kind == "equal":
        first, second = f"lies within {size}", f"lies outside of {size}"
    said = [
        f"that the effect {what}: p{SPACE}{_equals(p)}" + ("" if holm is None else f", corrected {p_text(holm)}")
        for what, p, holm in (
            (first, tests.above, tests.above_holm),
            (second, tests.below, tests.below_holm),
        )
    ]
    return [(Strong("Tests:"), f" {'; '.join(said)}.")]


def _equals(p: float) -> str:
    return p_text(p) if p < 0.001 else f"={SPACE}{p_text(p)}"


def _since_the_plan(changed: Sequence[str] | None) -> str:
    if changed is None:
        return "none was frozen before the runs"
    if changed:
        return f"changed since it was frozen: {', '.join(changed)}"
    return "the comparison, the floors and the settings are as they were frozen"


def _folded(decision: Decision, results: Results) -> list[Block]:
    """All comparisons of a claim, and the effect of every seed."""
    outcomes = decision.outcomes
    if not outcomes:
        return []
    rows = [_row(*pair) for pair in zip(decision.claim.rows(), outcomes, strict=True)]
    blocks: list[Block] = [Table(COLUMNS, rows, "tlllllllllr")]
    seeds = sorted({seed for outcome in outcomes for seed in outcome.seeds})
    of_seeds: list[list[Text]] = []
    for outcome in outcomes:
        known = dict(zip(outcome.seeds, outcome.per_seed, strict=False))  # none where the effect is undefined
        of_seeds.append([outcome.name, *(_cell(outcome, known.get(seed)) for seed in seeds)])
    if decision.claim.primary is not None and decision.lead is not None:
        of_seeds += _sides(decision.claim.primary, decision.lead, results, seeds)
    if seeds:
        blocks.append(Table(("Effect of seed", *map(str, seeds)), of_seeds, "t" + "r" * len(seeds)))
    count = f"{len(outcomes)} comparison{'s' * (len(outcomes) > 1)}"
    return [Details(f"{decision.claim.id}: {count}, and every seed", blocks)]


def _cell(outcome: Outcome, value: float | None) -> str:
    return "–" if value is None else amount(asdict(outcome), value)


def _sides(row: Comparison, lead: Outcome, results: Results, seeds: Sequence[int]) -> list[list[Text]]:
    """The measure itself, of every variant and seed, where it is of the whole test split."""
    if row.over is not None or row.where != {"split": "test"}:
        return []
    rows: list[list[Text]] = []
    for variant in lead.variants:
        numbers = [results[variant].metrics.get(seed, {}).get(row.metric) for seed in seeds]
        shown = [
            "–" if value is None or not math.isfinite(value) else value_text(row.metric, value) for value in numbers
        ]
        rows.append([(Code(variant), f", {metric_title(row.metric, lead.token)}"), *shown])
    return rows


def _row(row: Row, outcome: Outcome) -> list[Text]:
    found, tests = asdict(outcome), outcome.tests
    kind = "decides" if outcome.deciding else "supporting"
    reason = f": {outcome.reason}" if outcome.reason else ""
    paper = "–" if outcome.paper is None else with_unit(amount(found, outcome.paper), found)
    return [
        f"{outcome.name} ({kind}){reason}",
        (Badge(outcome.verdict), f": {outcome.how}") if outcome.how else Badge(outcome.verdict),
        tuple(_listed([Code(variant) for variant in outcome.variants])),
        ", ".join(metric_title(metric, outcome.token) for metric in row.metrics()),
        effect_text(found),
        _bound(row) if isinstance(row, Exact) else matters(found) if outcome.relevant else "–",
        paper,
        "–" if tests is None else p_text(tests.above, tests.above_holm),
        "–" if tests is None else p_text(tests.below, tests.below_holm),
        ", ".join(map(str, outcome.seeds)) or "–",
        plain(outcome.n, 0),
    ]


def _bound(row: Exact) -> str:
    """What an identity's number must be."""
    if row.value is None:
        return f"at most {number(row.at_most)}"
    margin = f"{SPACE}±{SPACE}{typeset(f'{row.tolerance:g}')}" if row.tolerance else ""
    return f"exactly {number(row.value)}{margin}"


def spoken(metric: str, token: str) -> str:
    """A measure's title as it stands inside of a sentence: its unit is said elsewhere."""
    title = metric_title(metric, token).removesuffix(f", {measure(metric).unit}")
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


def _restriction(where: Mapping[str, Condition]) -> str:
    """Which test examples count, if not all."""
    parts = [
        f"{name.replace('_', ' ')} {f'{of[0]:g} to {of[1]:g}' if isinstance(of, tuple) else of}"
        for name, of in where.items()
        if (name, of) != ("split", "test")
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _listed(names: Sequence[Inline]) -> list[Inline]:
    return [part for name in names for part in (", ", name)][1:]


def _parts(text: Text) -> tuple[Inline, ...]:
    return text if isinstance(text, tuple) else (text,)
