"""The report of one paper at one scale: what it says of each claim, tables, figures; and its numbers as files."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.claims.comparisons import Exact, Row
from shared.claims.competence import below, is_trained
from shared.claims.outcomes import VERDICTS, Decision, Evidence
from shared.claims.results import load_results
from shared.claims.schema import Claim, Claims, load_claims
from shared.claims.verdicts import decide
from shared.data.cards import Card
from shared.reports import document as doc
from shared.reports import naming, runs, verdicts
from shared.reports.curves import write_curves
from shared.reports.document import SPACE, code, number, plain, strong, typeset
from shared.reports.exhibits import Exhibit, KindReport, Results, by_task, draw_exhibits
from shared.reports.figures import draw_seeds
from shared.reports.page import ScaleCard, ScalePart, fill, render, write_part
from shared.reports.paper import Paper
from shared.reports.plans import Frozen, deciding_records, plan_blocks, since_frozen, standing
from shared.reports.verdicts import ALIGN, COLUMNS, Entry, amount, matters, paragraphs, say

PARTS = {"train_pairs": "pairs", "lines": "lines", "images": "pictures"}
"""Settings of a corpus that take the first examples of a split, and what they count."""
IN_USE = "quick"
SEPARATOR = " \\\n  "  # of what a command makes, a line each
SILENT = ("room", "control", "tuning", "order")
"""Checks that are not mentioned where they do not apply."""
COMPARED = (
    *("Comparison", "As measured", "Variants", "Measure", "Effect, 95 % interval", "Matters from", "In the paper"),
    *("p of the first test (Holm)", "p of the second test (Holm)", "Seeds", "Test examples"),
)


def write_report(
    paper_dir: Path, runs_dir: Path, out_dir: Path, *, scale: str, left_out: Mapping[str, str] | None = None,
    judged: Collection[str] | None = None, deviations: Sequence[str] = (),
    figures: Sequence[Exhibit] = (), kind: KindReport | None = None,
    evidence: Mapping[str, Evidence] | None = None, frozen: Frozen | None = None,
    larger: tuple[str, Collection[str]] | None = None, today: Mapping[str, Mapping[str, Any]] | None = None,
    data: Mapping[str, Sequence[doc.Block]] | None = None,
) -> list[Decision]:  # fmt: skip
    """Judge a paper's claims by its runs; write the files of a scale, from which the page of the paper is joined.

    Args:
        paper_dir, runs_dir: ``replications/<paper>``, with paper.yaml and claims.yaml; ``runs/<scale>/<paper>``.
        out_dir: ``reports/<scale>/<paper>``; its figures folder is made anew.
        scale, deviations: of the runs, and from the paper at this scale.
        left_out, judged: variant to the reason why it does not run at this scale; those that do, by default all found.
        figures: what the paper shows (:func:`shared.reports.exhibits.load_exhibits`); claims know their metrics.
        kind: what reports of the paper's kind of task show; its measures must be registered.
        evidence, data: variant to what its data are, see :func:`decide`; task to what is said of its data.
        frozen, larger: the plan; the scale that is to decide what this one does not, and the variants that run there.
        today: variant to its settings of today, as they are recorded with a run; stale runs had others.

    Raises:
        ReplicationError: a file is missing or wrong, or runs do not fit together.
    """
    paper, frozen, kind = Paper.load(paper_dir / "paper.yaml"), frozen or Frozen(), kind or KindReport()
    results: Results = load_results(runs_dir, left_out, judged)
    for figure in figures:
        results = figure.completed(results)
    claims = load_claims(paper_dir / "claims.yaml", scale)
    decisions = decide(claims, results, scale, evidence=evidence, **frozen.known())
    entries = [_entry(each, results, frozen, paper.short) for each in decisions]
    tasks, folder = by_task(results), out_dir / "figures"
    shutil.rmtree(folder, ignore_errors=True)
    exhibits = draw_exhibits(figures, results, folder)
    later = larger and (*larger, load_claims(paper_dir / "claims.yaml", larger[0]))
    worded = [naming.in_words(entry) for entry in entries]
    found = Findings(paper_dir.name, scale, results, claims, worded, folder, later, exhibits)
    part = ScalePart(
        standing=[*standing(results, today or {}), *plan_blocks(frozen, [claim.id for claim in claims.claims])],
        cards=claim_cards(found),
        rest=[
            *runs.learned_blocks(claims.floors, tasks),
            *([doc.Heading("Further figures"), *exhibits[""]] if "" in exhibits else ()),
            *runs.our_results(tasks, results, kind, data),
            *kind.sections(decisions, results),
            *runs.cost(tasks),
            *runs.beside_the_paper(paper, tasks, scale, evidence),
            *runs.settings(paper, scale, deviations),
            *runs.provenance(tasks),
            doc.Heading("Make it again, or take it along"),
            doc.Paragraph(say("again")),
            found.repro(),
        ],
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write_pages(found, part, paper, out_dir)
    _write_json(out_dir / "claims.json", entries)
    _write_numbers(found, paper, out_dir)
    return decisions


def _write_pages(found: Findings, part: ScalePart, paper: Paper, out_dir: Path) -> None:
    """The scale's part of the paper's page, all of the scale as Markdown, and HTML that leads to the paper's page."""
    write_part(part, out_dir)
    blocks = [
        doc.Heading(f"{paper.short}, replicated at {found.scale} scale", level=1),
        doc.Paragraph(say("citation", paper=paper)),
        doc.Paragraph(say("one_scale", counts=verdicts.counts_by_sort(found.entries), paper=found.paper)),
        doc.Heading("Verdicts"),
        doc.Table(COLUMNS, [verdicts.claim_row(entry) for entry in found.entries], ALIGN),
        *part.standing,
        *whole_cards(found, part.cards),
        *part.rest,
        doc.Bullets(paragraphs("files", at="")),
    ]
    (out_dir / "README.md").write_text(render(blocks, "md", title="", folder=out_dir), encoding="utf-8")
    moved = fill("moved.html.j2", title=paper.short, target=f"../../{found.paper}/index.html")
    (out_dir / "index.html").write_text(moved, encoding="utf-8")


def _entry(decision: Decision, results: Results, frozen: Frozen, paper: str) -> dict[str, Any]:
    """The decision as claims.json has it, with its plan, the commits of its runs, and when the last of them ended."""
    records = deciding_records(decision, results)
    return decision.to_json() | {
        "plan": since_frozen(frozen, decision, records), "commits": sorted({runs.commit_of(each) for each in records}),
        "ended": max((each["finished"] for each in records if "finished" in each), default=None), "paper": paper,
        "design": frozen.ledger.designs.get(decision.claim.id),
        "machine": sorted({each["cpu"].partition(" (")[0] for each in records if "cpu" in each}),
    }  # fmt: skip


def _write_numbers(found: Findings, paper: Paper, out_dir: Path) -> None:
    """The files that the page offers."""
    (out_dir / "paper.bib").write_text(fill("paper.bib.j2", paper=paper) + "\n", encoding="utf-8")
    counts = Counter(entry["verdict"] for entry in found.entries)
    means = {name: dict(result.mean) for name, result in sorted(found.results.items()) if result.mean}
    write_curves(found.results, out_dir / "curves.csv")
    _write_json(out_dir / "metrics.json", {"claims": {kind: counts[kind] for kind in VERDICTS}, "variants": means})
    _write_json(out_dir / "runs.json", runs.run_entries(found.results, found.claims.floors))


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(_rounded(value), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    """The same with numbers to ten significant digits: the last of a float's digits depend on the processor.

    JSON has no infinite or undefined numbers, as diverged trainings have; they become null.
    """
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def describe_data(card: Card, corpus: Any) -> list[doc.Block]:
    """What the data of a task are, their splits, how much of them is used, and folded what to know of them.

    Args:
        card: of the data.
        corpus: the task's settings of them.
    """
    used = []
    for name, counts in PARTS.items():
        part = getattr(corpus, name, None) or {}
        of_split = {"train": part} if isinstance(part, int) else part
        used += [f"{count:,} {counts} of {split}" for split, count in of_split.items()]
    said = say("data", card=card, used=used, drawn=getattr(corpus, "train_texts", None))
    folded = [doc.Details("What to know of these data", [doc.Bullets(card.traps)])] if card.traps else []
    return [doc.Paragraph(said), *folded]


@dataclass(frozen=True)
class Findings:
    """What the runs of a paper at a scale say of its claims.

    Attributes:
        paper, scale: the folder's name, and of its runs.
        results: of all variants.
        claims: of the paper, at the scale.
        entries: what became of each claim, as claims.json has it.
        folder: of figures.
        larger: the next larger scale, the variants that run there and the claims at it; None of the largest.
        exhibits: claim to the figures and tables that belong to it, "" to those of none.
    """

    paper: str
    scale: str
    results: Results
    claims: Claims
    entries: Sequence[Entry]
    folder: Path
    larger: tuple[str, Collection[str], Claims] | None = None
    exhibits: Mapping[str, Sequence[doc.Block]] = field(default_factory=dict)

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


def claim_cards(found: Findings) -> dict[str, ScaleCard]:
    """What is said of every claim; pictures are drawn into the folder."""
    pairs = zip(found.claims.claims, found.entries, strict=True)
    return {claim.id: _card(claim, entry, found) for claim, entry in pairs}


def whole_cards(found: Findings, cards: Mapping[str, ScaleCard]) -> list[doc.Block]:
    """The cards as the page of one scale shows them, one below the other."""
    blocks: list[doc.Block] = [doc.Heading("Claim by claim")]
    for entry in found.entries:
        card = cards[entry["id"]]
        folded = [doc.Details("How it was decided", card.decided)] if card.decided else []
        said = [*card.intro, *card.evidence, *card.exhibits, *folded]
        title = doc.sentence(verdicts.in_short(entry))
        blocks.append(doc.Card(entry["id"], entry["verdict"], entry["how"], title, said))
    return blocks


def _card(claim: Claim, entry: Entry, found: Findings) -> ScaleCard:
    lead, said = entry["lead"], list[doc.Block]()
    quoted = doc.Paragraph(f"{strong('The statement:')} {claim.statement.strip()}")
    if claim.primary is not None and lead is not None and lead["effect"] is not None:
        said.append(doc.Paragraph(say("effect", row=claim.primary, lead=lead)))
        failed, path = unlearned(lead, found), found.folder / f"seeds_{claim.id}.png"
        draw_seeds(lead, failed, path, say("axis", lead=lead), getattr(claim.primary, "may_be", None) or "")
        said.append(doc.Figure(path, say("seeds", claim=claim, lead=lead, failed=failed), say("seen", lead=lead)))
    if points := _points(claim, entry, found):
        said.append(doc.Bullets(points))
    intro, exhibits = [quoted, doc.Paragraph(say("in_paper", claim=claim))], found.exhibits.get(claim.id, ())
    return ScaleCard(intro, said, exhibits, [] if lead is None else _decided(claim, entry, found))


def unlearned(lead: Entry, found: Findings) -> set[int]:
    """The seeds in which a variant that is meant to be good does not reach the floor of its task."""
    failed: set[int] = set()
    for run in (found.results[variant] for variant in lead["variants"]):
        floor = found.claims.floors.get(run.task)
        if floor is not None and run.variant not in floor.exempt and is_trained(run):
            failed |= {*below(floor, run, lead["seeds"])}
    return failed


def _points(claim: Claim, entry: Entry, found: Findings) -> list[str]:
    """What a reader must know beside the effect: why no more can be said, how strong it is, what is different."""
    of = {outcome["name"]: outcome for outcome in entry["comparisons"]}
    points = [say("part", part=part, outcome=of.get(part["by"])) for part in entry.get("parts", ())]
    if reason := say("why", entry=entry):
        points.append(f"{strong('Why:')} {reason}.")
    if entry["verdict"] == "inconclusive" and entry["lead"] and (needed := verdicts.seeds_needed(entry["lead"])):
        points.append(say("needed", seeds=needed, entry=entry))
    if entry["lead"] is not None and entry["lead"]["kind"] != "exact":
        points += [say("strength", entry=entry), say("attempts", entry=entry)]
    if claim.different_here:
        points.append(f"{strong('Different here:')} {claim.different_here}")
    if found.larger is not None and entry["verdict"] in ("inconclusive", "not tested"):
        scale, variants, claims = found.larger
        there = next(each for each in claims.claims if each.id == claim.id)
        if (here := there.undecided_at(scale)) is not None:
            points += [] if here == entry["reason"] else [say("undecided", scale=scale, reason=here)]
        elif there.primary is not None and {*there.primary.variants} <= {*variants}:
            points.append(say("planned", scale=scale, row=there.primary))
    return points


def _decided(claim: Claim, entry: Entry, found: Findings) -> list[doc.Block]:
    """The comparison, tests and checks, the plan, all comparisons with every seed, and the command."""
    lead, row, blocks, points = entry["lead"], claim.primary, list[doc.Block](), list[str]()
    if row is not None and [*row.variants] == [*lead["variants"]]:  # else another one decides at this scale
        task = found.results[lead["variants"][0]].task
        blocks.append(doc.Paragraph(say("comparison", row=row, lead=lead, task=task)))
        points += [say("tests", row=row, lead=lead)] if lead["tests"] is not None else []
    for part, outcome in zip(claim.rows(), entry["comparisons"], strict=True):
        if part in claim.deciding and part != row and not isinstance(part, Exact) and outcome["tests"] is not None:
            points.append(say("reason", row=part, outcome=outcome))
    asked = [each for each in entry["checks"] if each["name"] not in SILENT or each["passed"] != "not asked"]
    points += [say("check", each=each) for each in asked]
    if other := say("other_designs", entry=entry):
        points.append(other)
    blocks.append(doc.Bullets([*points, f"{strong('Plan:')} {entry['plan']}."]))
    blocks += comparison_tables(claim, entry, found.results)
    tested = [row for row in entry["comparisons"] if row["verdict"] != "not tested"]
    runs = dict.fromkeys(variant for row in tested for variant in row["variants"])
    return [*blocks, doc.Paragraph("These runs alone:"), found.repro([*runs])] if runs else blocks


def comparison_tables(claim: Claim, entry: Entry, results: Results) -> list[doc.Block]:
    """All comparisons of a claim, and the effect of every seed."""
    outcomes, primary, lead = entry["comparisons"], claim.primary, entry["lead"]
    blocks: list[doc.Block] = []
    if outcomes:
        rows = [_row(row, outcome) for row, outcome in zip(claim.rows(), outcomes, strict=True)]
        blocks.append(doc.Table(COMPARED, rows, "tlllllllllr"))
    seeds = sorted({seed for outcome in outcomes for seed in outcome["seeds"]})
    of_seeds = []
    for outcome in (each for each in outcomes if each["seeds"]):
        known = dict(zip(outcome["seeds"], outcome["per_seed"], strict=False))  # none where the effect is undefined
        of_seeds.append([outcome["name"], *("–" if k not in known else amount(outcome, known[k]) for k in seeds)])
    # The measure itself, of every variant and seed, where it is of the whole test split.
    if lead is not None and primary is not None and primary.over is None and primary.where == {"split": "test"}:
        for variant in lead["variants"]:
            numbers = [results[variant].metrics.get(seed, {}).get(primary.metric, math.nan) for seed in seeds]
            values = [verdicts.value_text(primary.metric, value) if math.isfinite(value) else "–" for value in numbers]
            title = verdicts.compared_titles(primary, lead["token"])[0]
            of_seeds.append([f"{naming.name_and_code(variant)}, {title}", *values])
    if seeds:
        blocks.append(doc.Table(("Effect of seed", *map(str, seeds)), of_seeds, "t" + "r" * len(seeds)))
    return blocks


def _row(row: Row, outcome: Entry) -> list[str]:
    tests = outcome["tests"]
    reason = f": {outcome['reason']}" if outcome["reason"] else ""
    bound = matters(outcome) if outcome["relevant"] else "–"
    if isinstance(row, Exact):
        margin = f"{SPACE}±{SPACE}{typeset(f'{row.tolerance:g}')}" if row.tolerance else ""
        bound = f"at most {number(row.at_most)}" if row.value is None else f"exactly {number(row.value)}{margin}"
    return [
        f"{outcome['name']} ({'decides' if outcome['deciding'] else 'supporting'}){reason}",
        verdicts.verdict_text(outcome),
        ", ".join(map(code, outcome["variants"])),
        ", ".join(verdicts.compared_titles(row, outcome["token"])),
        verdicts.effect_text(outcome),
        bound,
        "–" if outcome["paper"] is None else verdicts.with_unit(amount(outcome, outcome["paper"]), outcome),
        *("–" if tests is None else verdicts.p_text(tests[test], tests[f"{test}_holm"]) for test in ("above", "below")),
        ", ".join(map(str, outcome["seeds"])) or "–",
        plain(outcome["n"], 0),
    ]
