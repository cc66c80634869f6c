"""What a report says of each claim: what was compared and found, how strong that is, and what lies behind it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shared.claims.comparisons import Comparison, Condition, Correlation, Sides
from shared.claims.outcomes import Decision, Outcome
from shared.claims.results import RunResults
from shared.claims.schema import Claim, Claims
from shared.claims.words import number_of
from shared.metrics.registry import measure
from shared.reports.comparison_tables import comparison_tables
from shared.reports.document import (
    MINUS,
    SPACE,
    Badge,
    Block,
    Bullets,
    Card,
    Code,
    CodeBlock,
    Details,
    Heading,
    Inline,
    Paragraph,
    Strong,
    Text,
    listed,
    typeset,
)
from shared.reports.naming import called
from shared.reports.plans import NO_PLAN, Frozen, since_frozen
from shared.reports.seed_figures import seed_figure
from shared.reports.verdicts import (
    amount,
    compared_titles,
    effect_text,
    evidence_text,
    matters,
    p_text,
    supporting_text,
    value_text,
    with_unit,
)

Results = Mapping[str, RunResults]
CHECKS = {
    "floor": "Learned",
    "room": "Room for an effect",
    "gap": "Gap between the sides",
    "doubling": "Twice the updates",
    "order": "Order of the variants",
}
SILENT = ("room", "order")
"""Checks that are not mentioned where they do not apply."""
HAS = {"greater": "higher", "less": "lower", "equal": "the same"}
CHANGES = {
    "greater": "loses less (or gains more)",
    "less": "gains less (or loses more)",
    "equal": "changes as much in",
}
"""What a slope over a covariate does, by the kind of the comparison."""
SOURCES = {
    "C:paper": "",
    "C:code": " (by its authors' code)",
    "C:note": " (read in a note on the paper)",
    "D": " (the effect is computed from its numbers)",
    "M": " (quoted from memory)",
}
PASSED = {"yes": "", "no": "failed: ", "not asked": "not checked: "}


@dataclass(frozen=True)
class Shown:
    """What the cards of a report's claims show beside the decisions.

    Attributes:
        results: of all variants.
        claims: of the paper, at the scale.
        folder: of figures.
        larger: the next larger scale, and the claims there; None of the largest and of one that decides nothing.
        exhibits: claim to the figures and tables that belong to it, "" to those of none.
        stages: the file of the paper's stages, for the commands that make a claim's runs.
        frozen: the plan of the scale.
        lent: variants that are runs of another paper.
    """

    results: Results
    claims: Claims
    folder: Path
    larger: tuple[str, Claims] | None = None
    exhibits: Mapping[str, Sequence[Block]] = field(default_factory=dict)
    stages: str = ""
    frozen: Frozen = NO_PLAN
    lent: Collection[str] = ()


def claim_sections(decisions: Sequence[Decision], shown: Shown) -> list[Block]:
    """A card for every claim; pictures are drawn into its folder."""
    return [Heading("Claim by claim"), *(_card(decision, shown) for decision in decisions)]


def _card(decision: Decision, shown: Shown) -> Card:
    claim, lead = decision.claim, decision.lead
    said: list[Block] = [Paragraph(_in_the_paper(claim))]
    if claim.primary is not None and lead is not None and lead.effect is not None:
        said.append(Paragraph(measured(claim.primary, lead)))
        picture = shown.folder / f"seeds_{claim.id}.png"
        said.append(seed_figure(claim, lead, shown.claims.floors, shown.results, picture))
    said += shown.exhibits.get(claim.id, ())
    if points := _points(decision, shown):
        said.append(Bullets(points))
    if lead is not None:
        said.append(Details("How it was decided", _decided(decision, lead, shown)))
    return Card(claim.id, Badge(decision.verdict), decision.how, claim.statement, said)


def _in_the_paper(claim: Claim) -> Text:
    return (
        Strong("In the paper"),
        f" ({claim.where}): {claim.in_paper.text.rstrip('.')}{SOURCES[claim.in_paper.source]}.",
    )


def _points(decision: Decision, shown: Shown) -> list[Text]:
    """What a reader must know beside the effect: why no more can be said, how strong it is, what is different."""
    claim, points = decision.claim, list[Text]()
    if (reason := why(decision)) is not None:
        points.append((Strong("Why:"), f" {reason}."))
    points += strength(decision)
    if claim.different_here:
        points.append((Strong("Different here:"), f" {claim.different_here}"))
    if shown.larger is not None and decision.verdict in ("inconclusive", "not tested"):
        scale, claims = shown.larger
        at_larger = {each.id: each for each in claims.claims}
        points += _planned(at_larger[claim.id], scale, decision.reason)
    return points


def _decided(decision: Decision, lead: Outcome, shown: Shown) -> list[Block]:
    """The comparison, tests and checks, the plan, all comparisons with every seed, and the command."""
    claim, blocks = decision.claim, list[Block]()
    if claim.primary is not None:
        blocks.append(Paragraph(claimed(claim.primary, lead, shown.results)))
    plan = (Strong("Plan:"), f" {since_frozen(shown.frozen, decision, shown.results)}.")
    blocks += [Bullets([*tests_and_checks(decision, lead), plan]), *comparison_tables(decision, shown.results)]
    runs = dict.fromkeys(variant for row in decision.outcomes if row.tested for variant in row.variants)
    if shown.stages and runs:
        stages = (f"{'lend' if variant in shown.lent else 'evaluate'}@{variant}" for variant in runs)
        targets = " \\\n  ".join(f"{shown.stages}:{stage}" for stage in stages)
        blocks += [Paragraph("These runs alone:"), CodeBlock(f"dvc repro {targets}")]
    return blocks


def claimed(row: Comparison, lead: Outcome, results: Results) -> Text:
    """What was compared, on which task, and what the claim expects of it."""
    titles = compared_titles(row, lead.token)
    title = spoken(titles[0], row.metric)
    sides = [called(name) for name in lead.variants]
    task = results[lead.variants[0]].task
    said: list[Inline] = ["On the task ", Code(task), f"{_restriction(row.where)}, the claim expects that "]
    if isinstance(row, Sides):
        than = "as" if row.kind == "equal" else "than"
        if row.over is not None:
            said += [*sides[0], f" {CHANGES[row.kind]} {title} per {row.over.per} {than} "]
            said += sides[-1] if row.than is None else (typeset(f"{row.than:g}"),)
        elif row.than is not None:
            of = (f"the {title} (", *sides[0], ")") if row.called is not None else (f"{title} of ", *sides[0])
            said += [*of, f" is {HAS[row.kind]} {than} {typeset(f'{row.than:g}')}"]
        else:
            said += [f"{title} is {HAS[row.kind]} for ", *sides[0], f" {than} for ", *sides[-1]]
    elif isinstance(row, Correlation):
        also = spoken(titles[1], row.other)
        rises = "rises" if row.direction == "positive" else "falls"
        said += [f"{title} rises and {also} {rises} together over ", *listed(sides)]
        said.append(f": that Spearman's correlation is above {typeset(f'{row.than:g}')}")
    else:
        said += [f"{title} {row.kind} along ", *listed(sides)]
    if lead.relevant is not None:
        reason = f" Reason: {row.because.rstrip('. ')}." if row.because else ""
        said.append(f". {_smallest(asdict(lead))}.{reason}")
        return tuple(said)
    return (*said, ".")


def tests_and_checks(decision: Decision, lead: Outcome) -> list[Text]:
    """The two tests that decide, and what was asked of the models."""
    return [
        *_tests(decision.claim.primary, lead),
        *(
            (Strong(f"{CHECKS[check.name]}:"), f" {PASSED[check.passed]}{_with_minus(check.said)}.")
            for check in decision.checks
            if check.name not in SILENT or check.passed != "not asked"
        ),
    ]


def measured(row: Comparison, lead: Outcome) -> Text:
    """The means and the effect, the paper's beside it if it is the same quantity, and from where on one matters."""
    outcome = asdict(lead)
    said: list[Inline] = [Strong("Here"), f" (mean over {number_of(len(lead.seeds), 'seed')}): "]
    if row.called is not None and len(lead.sides) == 1:
        ((variant, value),) = lead.sides.items()
        said += [f"{row.called}: {value_text(lead.metric, value)} (", *called(variant), "); "]
    elif lead.sides:
        for place, (variant, value) in enumerate(lead.sides.items()):
            said += [", " if place else "", *called(variant), f"{SPACE}{value_text(lead.metric, value)}"]
        per = f" per {row.over.per}" if isinstance(row, Sides) and row.over is not None else ""
        said.append(f" {spoken(compared_titles(row, lead.token)[0], row.metric)}{per}; ")
    label = "correlation" if isinstance(row, Correlation) else "effect"
    label += ", a geometric mean," if lead.scale == "log" else ""
    said += [f"{label} ", Strong(effect_text(outcome))]
    if lead.paper is not None:
        said.append(f", in the paper {with_unit(amount(outcome, lead.paper), outcome)}")
    agrees = "the first is higher" if lead.kind == "equal" else "it agrees with the claim"
    said.append(f"; {'above 1' if lead.scale == 'log' else 'positive'} where {agrees}.")
    return (*said, f" {_smallest(outcome)}.")


def _smallest(outcome: Mapping[str, Any]) -> str:
    """The smallest effect that matters, as a sentence."""
    what = "differences that matter are" if outcome["kind"] == "equal" else "effect that matters is"
    return f"The smallest {what} {matters(outcome)}"


def strength(decision: Decision) -> list[Text]:
    """What the evidence is, on how many seeds and test examples, and how many supporting comparisons agree."""
    lead = decision.lead
    if lead is None or lead.kind == "exact":
        return []
    n = "" if lead.n is None else f", {number_of(lead.n, 'test example')}"
    said = f"{evidence_text(decision.to_json(), asdict(lead))}{n}"
    if decision.supporting:
        said += f"; {supporting_text(decision.agreeing, len(decision.supporting))}"
    return [(Strong("Strength:"), f" {said}.")]


def _planned(claim: Claim, scale: str, said: str) -> list[Text]:
    """What decides a claim at a larger scale, or the reason why nothing does unless already ``said``."""
    reason = claim.undecided_at(scale)
    if reason is not None:
        return [] if reason == said else [(Strong(f"Not decided at {scale}, either:"), f" {reason.rstrip('. ')}.")]
    if claim.primary is None:
        return []
    measures = " and ".join(compared_titles(claim.primary))
    variants = listed([called(name) for name in claim.primary.compared()])
    return [(Strong(f"At {scale} it is decided by"), f" {measures} of ", *variants, ".")]


def _with_minus(said: str) -> str:
    """A sentence with true minus signs; hyphens within names stay."""
    return re.sub(r"(?<!\S)-(?=\d)", MINUS, said)


def why(decision: Decision) -> str | None:
    """The reason of a verdict, if the tests alone do not explain it."""
    lead = decision.lead
    if decision.verdict in ("reproduced", "contradicted"):
        return None
    if decision.verdict == "inconclusive" and lead is not None and not (lead.reason or decision.how):
        if lead.kind == "equal":
            return "the interval allows equality and differences that matter"
        return "the interval allows effects that matter and effects that do not agree with the claim"
    return decision.reason


def _tests(row: Comparison | None, lead: Outcome) -> list[Text]:
    """The two tests that decide, in words; the corrected p-values count."""
    tests = lead.tests
    if tests is None:
        return []
    size = matters(asdict(lead))
    if isinstance(row, Correlation) and lead.repeats < 1.0:
        size = amount(asdict(lead), row.bound(lead.repeats))
        size += (
            f" ({row.than + row.margin:g} times {lead.repeats:.2f}, as chance in the runs makes correlations smaller"
        )
        size += f", minus {row.than:g})" if row.than else ")"
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


def spoken(title: str, metric: str) -> str:
    """A measure's title as it stands inside of a sentence: its unit is said elsewhere."""
    title = title.removesuffix(f", {measure(metric).unit}")
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


def _restriction(where: Mapping[str, Condition]) -> str:
    """Which test examples count, if not all."""
    parts = [
        f"{name.replace('_', ' ')} {f'{of[0]:g} to {of[1]:g}' if isinstance(of, tuple) else of}"
        for name, of in where.items()
        if (name, of) != ("split", "test")
    ]
    return f" ({', '.join(parts)})" if parts else ""
