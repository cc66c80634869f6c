"""What a report says of each claim: what was compared and found, how strong that is, and what lies behind it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from shared.claims.comparisons import Comparison, Condition, Correlation, Exact, Floor, Row, Sides
from shared.claims.competence import below, is_trained
from shared.claims.outcomes import Decision, Outcome
from shared.claims.schema import Claim, Claims
from shared.claims.words import number_of
from shared.metrics.registry import measure
from shared.reports import document as doc
from shared.reports.document import MINUS, SPACE, code, number, plain, strong, typeset
from shared.reports.exhibits import Results
from shared.reports.forest import seed_figure
from shared.reports.naming import name_and_code
from shared.reports.plans import Frozen, since_frozen
from shared.reports.verdicts import (
    Entry,
    amount,
    compared_titles,
    effect_text,
    evidence_text,
    matters,
    p_text,
    supporting_text,
    value_text,
    verdict_text,
    with_unit,
)

CHECKS = {
    "floor": "Learned",
    "room": "Room for an effect",
    "gap": "Gap between the sides",
    "doubling": "Twice the updates",
    "order": "Order of the variants",
}
IN_USE = "quick"
SEPARATOR = " \\\n  "  # of what a command makes, a line each
SILENT = ("room", "order")
"""Checks that are not mentioned where they do not apply."""
HYPHEN = re.compile(r"(?<!\S)-(?=\d)")  # that stands for a minus; those within names stay
PASSED = {"yes": "", "no": "failed: ", "not asked": "not checked: "}
HAS = {"greater": "higher", "less": "lower", "equal": "the same"}
CHANGES = {"greater": "loses less (or gains more)", "less": "gains less (or loses more)", "equal": "changes as much in"}
"""What a slope over a covariate does, by the kind of the comparison."""
SOURCES = {
    "C:paper": "",
    "C:code": " (by its authors' code)",
    "C:note": " (read in a note on the paper)",
    "D": " (the effect is computed from its numbers)",
    "M": " (quoted from memory)",
}
COLUMNS = (
    *("Comparison", "As measured", "Variants", "Measure", "Effect, 95 % interval", "Matters from", "In the paper"),
    *("p of the first test (Holm)", "p of the second test (Holm)", "Seeds", "Test examples"),
)


@dataclass(frozen=True)
class Shown:
    """What the cards of a report's claims show beside the decisions.

    Attributes:
        paper, scale: the folder's name, and of its runs.
        results: of all variants.
        claims: of the paper, at the scale.
        folder: of figures.
        larger: the next larger scale, and the variants that run there; None of the largest and of one that decides
            nothing.
        next_claims: the claims at that scale.
        exhibits: claim to the figures and tables that belong to it, "" to those of none.
        frozen: the plan of the scale.
    """

    paper: str
    scale: str
    results: Results
    claims: Claims
    folder: Path
    larger: tuple[str, Collection[str]] | None = None
    next_claims: Claims | None = None
    exhibits: Mapping[str, Sequence[doc.Block]] = field(default_factory=dict)
    frozen: Frozen = field(default_factory=Frozen)

    def repro(self, variants: Sequence[str] = ()) -> doc.CodeBlock:
        """The command that makes the report, or the runs of some variants; those of another paper are made there."""
        targets = []
        for name in variants:
            other, _, variant = name.removesuffix("-ensemble").rpartition("/")
            targets.append(f"replications/{other or self.paper}/{self.scale}/dvc.yaml:evaluate@{variant}")
        # DVC sees the scale in use alone, which is this one unless a reader has changed it.
        first = "" if self.scale == IN_USE else f"python -m shared.pipeline use {self.scale}\n"
        made = targets or [f"replications/{self.paper}/{self.scale}/dvc.yaml"]
        return doc.CodeBlock(f"{first}dvc repro {SEPARATOR.join(dict.fromkeys(made))}")


def claim_cards(decisions: Sequence[Decision], shown: Shown) -> list[doc.Block]:
    """A card for every claim; pictures are drawn into its folder."""
    return [doc.Heading("Claim by claim"), *(_card(decision, shown) for decision in decisions)]


def _card(decision: Decision, shown: Shown) -> doc.Card:
    claim, lead = decision.claim, decision.lead
    source = SOURCES[claim.in_paper.source]
    said: list[doc.Block] = [
        doc.Paragraph(f"{strong('In the paper')} ({claim.where}): {claim.in_paper.text.rstrip('.')}{source}.")
    ]
    if claim.primary is not None and lead is not None and lead.effect is not None:
        said.append(doc.Paragraph(describe_effect(claim.primary, lead)))
        failed = unlearned(lead, shown.claims.floors, shown.results)
        said.append(seed_figure(claim.id, lead, failed, shown.folder / f"seeds_{claim.id}.png"))
    said += shown.exhibits.get(claim.id, ())
    if points := _points(decision, shown):
        said.append(doc.Bullets(points))
    if lead is not None:
        said.append(doc.Details("How it was decided", _decided(decision, lead, shown)))
    return doc.Card(claim.id, decision.verdict, decision.how, claim.statement, said)


def unlearned(lead: Outcome, floors: Mapping[str, Floor], results: Results) -> set[int]:
    """The seeds in which a variant that is meant to be good does not reach the floor of its task."""
    asked = [
        (floor, run)
        for run in (results[variant] for variant in lead.variants)
        if (floor := floors.get(run.task)) is not None and run.variant not in floor.exempt and is_trained(run)
    ]
    return {seed for floor, run in asked for seed in below(floor, run, lead.seeds)}


def _points(decision: Decision, shown: Shown) -> list[doc.Text]:
    """What a reader must know beside the effect: why no more can be said, how strong it is, what is different."""
    claim, points = decision.claim, list[doc.Text]()
    if (reason := why(decision)) is not None:
        points.append(f"{strong('Why:')} {reason}.")
    points += describe_strength(decision)
    if claim.different_here:
        points.append(f"{strong('Different here:')} {claim.different_here}")
    if (
        shown.larger is not None
        and shown.next_claims is not None
        and decision.verdict in ("inconclusive", "not tested")
    ):
        there = next(each for each in shown.next_claims.claims if each.id == claim.id)
        points += _planned(there, *shown.larger, decision.reason)
    return points


def _planned(claim: Claim, scale: str, variants: Collection[str], said: str) -> list[doc.Text]:
    """What decides a claim at a larger scale, or the reason why nothing does unless already ``said``."""
    if (reason := claim.undecided_at(scale)) is not None:
        return [] if reason == said else [f"{strong(f'Not decided at {scale}, either:')} {reason.rstrip('. ')}."]
    if claim.primary is None or not {*claim.primary.compared()} <= {*variants}:
        return []
    measures = " and ".join(compared_titles(claim.primary))
    compared = ", ".join(map(name_and_code, claim.primary.compared()))
    return [f"{strong(f'At {scale} it is decided by')} {measures} of {compared}."]


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


def describe_strength(decision: Decision) -> list[doc.Text]:
    """What the evidence is, on how many seeds and test examples, and how many supporting comparisons agree."""
    lead = decision.lead
    if lead is None or lead.kind == "exact":
        return []
    n = "" if lead.n is None else f", {number_of(lead.n, 'test example')}"
    said = f"{evidence_text(decision.to_json(), asdict(lead))}{n}"
    if decision.supporting:
        said += f"; {supporting_text(decision.agreeing, len(decision.supporting))}"
    return [f"{strong('Strength:')} {said}."]


def describe_effect(row: Comparison, lead: Outcome) -> str:
    """The means and the effect, the paper's beside it if it is the same quantity, and from where on one matters."""
    outcome = asdict(lead)
    said = f"{strong('Here')} (mean over {number_of(len(lead.seeds), 'seed')}): "
    values = [(name_and_code(variant), value_text(lead.metric, value)) for variant, value in lead.sides.items()]
    if row.called is not None and len(values) == 1:
        said += f"{row.called}: {values[0][1]} ({values[0][0]}); "
    elif values:
        per = f" per {row.over.per}" if isinstance(row, Sides) and row.over is not None else ""
        title = spoken(compared_titles(row, lead.token)[0], row.metric)
        said += f"{', '.join(SPACE.join(value) for value in values)} {title}{per}; "
    ratio = lead.scale == "log"
    label = ("correlation" if isinstance(row, Correlation) else "effect") + ", a geometric mean," * ratio
    paper = "" if lead.paper is None else f", in the paper {with_unit(amount(outcome, lead.paper), outcome)}"
    agrees = "the first is higher" if lead.kind == "equal" else "it agrees with the claim"
    above = "above 1" if ratio else "positive"
    return f"{said}{label} {strong(effect_text(outcome))}{paper}; {above} where {agrees}. {_smallest(outcome)}."


def _smallest(outcome: Entry) -> str:
    """The smallest effect that matters, as a sentence."""
    what = "differences that matter are" if outcome["kind"] == "equal" else "effect that matters is"
    return f"The smallest {what} {matters(outcome)}"


def _decided(decision: Decision, lead: Outcome, shown: Shown) -> list[doc.Block]:
    """The comparison, tests and checks, the plan, all comparisons with every seed, and the command."""
    claim, blocks = decision.claim, list[doc.Block]()
    if claim.primary is not None:
        blocks.append(doc.Paragraph(describe_comparison(claim.primary, lead, shown.results)))
    plan = f"{strong('Plan:')} {since_frozen(shown.frozen, decision, shown.results)}."
    blocks += [doc.Bullets([*tests_and_checks(decision, lead), plan]), *comparison_tables(decision, shown.results)]
    runs = dict.fromkeys(variant for row in decision.outcomes if row.tested for variant in row.variants)
    if runs:
        blocks += [doc.Paragraph("These runs alone:"), shown.repro([*runs])]
    return blocks


def describe_comparison(row: Comparison, lead: Outcome, results: Results) -> str:
    """What was compared, on which task, and what the claim expects of it."""
    titles, sides = compared_titles(row, lead.token), [name_and_code(name) for name in lead.variants]
    title, bound = spoken(titles[0], row.metric), getattr(row, "than", None)
    if isinstance(row, Sides):
        than = "as" if row.kind == "equal" else "than"
        if row.over is not None:
            other = sides[-1] if bound is None else typeset(f"{bound:g}")
            said = f"{sides[0]} {CHANGES[row.kind]} {title} per {row.over.per} {than} {other}"
        elif bound is not None:
            of = f"{title} of {sides[0]}" if row.called is None else f"the {title} ({sides[0]})"
            said = f"{of} is {HAS[row.kind]} {than} {typeset(f'{bound:g}')}"
        else:
            said = f"{title} is {HAS[row.kind]} for {sides[0]} {than} for {sides[-1]}"
    elif isinstance(row, Correlation):
        also, rises = spoken(titles[1], row.other), "rises" if row.direction == "positive" else "falls"
        said = f"{title} rises and {also} {rises} together over {', '.join(sides)}"
        said += f": that Spearman's correlation is above {typeset(f'{row.than:g}')}"
    else:
        said = f"{title} {row.kind} along {', '.join(sides)}"
    task = code(results[lead.variants[0]].task)
    said = f"On the task {task}{_restriction(row.where)}, the claim expects that {said}."
    if lead.relevant is None:
        return said
    reason = f" Reason: {row.because.rstrip('. ')}." if row.because else ""
    return f"{said} {_smallest(asdict(lead))}.{reason}"


def spoken(title: str, metric: str) -> str:
    """A measure's title as it stands inside of a sentence: its unit is said elsewhere."""
    title = title.removesuffix(f", {measure(metric).unit}")
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


def _restriction(where: Mapping[str, Condition]) -> str:
    """Which test examples count, if not all."""
    conditions = [
        f"{name.replace('_', ' ')} {f'{of[0]:g} to {of[1]:g}' if isinstance(of, tuple) else of}"
        for name, of in where.items()
        if (name, of) != ("split", "test")
    ]
    return f" ({', '.join(conditions)})" if conditions else ""


def tests_and_checks(decision: Decision, lead: Outcome) -> list[doc.Text]:
    """The two tests that decide, and what was asked of the models."""
    return [
        *_tests(decision.claim.primary, lead),
        *(
            f"{strong(f'{CHECKS[check.name]}:')} {PASSED[check.passed]}{HYPHEN.sub(MINUS, check.said)}."
            for check in decision.checks
            if check.name not in SILENT or check.passed != "not asked"
        ),
    ]


def _tests(row: Comparison | None, lead: Outcome) -> list[doc.Text]:
    """The two tests that decide, in words; the corrected p-values count."""
    tests, outcome = lead.tests, asdict(lead)
    if tests is None:
        return []
    size = matters(outcome)
    if isinstance(row, Correlation) and lead.repeats < 1.0:
        size = f"{amount(outcome, row.bound(lead.repeats))} ({row.than + row.margin:g} times {lead.repeats:.2f}, as "
        size += "chance in the runs makes correlations smaller" + (f", minus {row.than:g})" if row.than else ")")
    first, second = f"is above {'1' if lead.scale == 'log' else '0'}", f"is below {size}"
    if lead.kind == "equal":
        first, second = f"lies within {size}", f"lies outside of {size}"
    said = []
    for what, p, holm in ((first, tests.above, tests.above_holm), (second, tests.below, tests.below_holm)):
        corrected = "" if holm is None else f", corrected {p_text(holm)}"
        said.append(f"that the effect {what}: p{SPACE}{'' if p < 0.001 else f'={SPACE}'}{p_text(p)}{corrected}")
    return [f"{strong('Tests:')} {'; '.join(said)}."]


def comparison_tables(decision: Decision, results: Results) -> list[doc.Block]:
    """All comparisons of a claim, and the effect of every seed."""
    outcomes, primary = decision.outcomes, decision.claim.primary
    rows = [_row(*pair) for pair in zip(decision.claim.rows(), outcomes, strict=True)]
    blocks: list[doc.Block] = [doc.Table(COLUMNS, rows, "tlllllllllr")] if rows else []
    seeds = sorted({seed for outcome in outcomes for seed in outcome.seeds})
    of_seeds: list[list[doc.Text]] = []
    for outcome in (each for each in outcomes if each.seeds):
        known = dict(zip(outcome.seeds, outcome.per_seed, strict=False))  # none where the effect is undefined
        shown = ["–" if seed not in known else amount(asdict(outcome), known[seed]) for seed in seeds]
        of_seeds.append([outcome.name, *shown])
    lead = decision.lead
    # The measure itself, of every variant and seed, where it is of the whole test split.
    if lead is not None and primary is not None and primary.over is None and primary.where == {"split": "test"}:
        for variant in lead.variants:
            numbers = [results[variant].metrics.get(seed, {}).get(primary.metric, math.nan) for seed in seeds]
            values = [value_text(primary.metric, value) if math.isfinite(value) else "–" for value in numbers]
            of_seeds.append([f"{name_and_code(variant)}, {compared_titles(primary, lead.token)[0]}", *values])
    if seeds:
        blocks.append(doc.Table(("Effect of seed", *map(str, seeds)), of_seeds, "t" + "r" * len(seeds)))
    return blocks


def _row(row: Row, outcome: Outcome) -> list[doc.Text]:
    found, tests = asdict(outcome), outcome.tests
    reason = f": {outcome.reason}" if outcome.reason else ""
    return [
        f"{outcome.name} ({'decides' if outcome.deciding else 'supporting'}){reason}",
        verdict_text(found),
        ", ".join(map(code, outcome.variants)),
        ", ".join(compared_titles(row, outcome.token)),
        effect_text(found),
        _bound(row) if isinstance(row, Exact) else matters(found) if outcome.relevant else "–",
        "–" if outcome.paper is None else with_unit(amount(found, outcome.paper), found),
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
