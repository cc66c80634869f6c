"""The report of one paper at one scale: verdicts, cards, tables, figures, provenance; and its numbers as files."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.outcomes import VERDICTS, Decision, Evidence
from shared.claims.results import load_results
from shared.claims.schema import load_claims
from shared.claims.verdicts import decide
from shared.data.cards import Card
from shared.reports import document as doc
from shared.reports import naming, runs, verdicts
from shared.reports.cards import Findings, claim_cards, whole_cards
from shared.reports.curves import write_curves
from shared.reports.exhibits import Exhibit, KindReport, Results, Shows, by_task, draw_exhibits
from shared.reports.page import ScalePart, moved, render, write_part
from shared.reports.paper import Paper
from shared.reports.plans import Frozen, deciding_records, plan_blocks, since_frozen, stale_variants, standing
from shared.reports.verdicts import ALIGN, COLUMNS, paragraphs, say

PARTS = {"train_pairs": "pairs", "lines": "lines", "images": "pictures"}
"""Settings of a corpus that take the first examples of a split, and what they count."""


def write_report(
    paper_dir: Path, runs_dir: Path, out_dir: Path, *, scale: str, left_out: Mapping[str, str] | None = None,
    judged: Collection[str] | None = None, deviations: Sequence[str] = (),
    figures: Sequence[Exhibit | Shows] = (), kind: KindReport | None = None,
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
    shows = [each if isinstance(each, Shows) else Shows(each) for each in figures]
    for each in shows:
        results = each.exhibit.completed(results)
    claims = load_claims(paper_dir / "claims.yaml", scale)
    decisions = decide(claims, results, scale, evidence=evidence, **frozen.known())
    entries = [_entry(each, results, frozen, paper.short) for each in decisions]
    tasks, stale = by_task(results), stale_variants(results, today or {})
    shutil.rmtree(folder := out_dir / "figures", ignore_errors=True)
    exhibits = draw_exhibits(shows, results, folder)
    later = larger and (*larger, load_claims(paper_dir / "claims.yaml", larger[0]))
    worded = [naming.in_words(entry) for entry in entries]
    found = Findings(paper_dir.name, scale, results, claims, worded, folder, later, exhibits)
    part = ScalePart(
        standing=[*standing(results, stale), *plan_blocks(frozen, [claim.id for claim in claims.claims])],
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
        doc.Table(COLUMNS, [verdicts.claim_row(entry) for entry in found.entries], ALIGN, True),
        *part.standing,
        *whole_cards(found, part.cards),
        *part.rest,
        doc.Bullets(paragraphs("files", at="")),
    ]
    (out_dir / "README.md").write_text(render(blocks, "md", title="", folder=out_dir), encoding="utf-8")
    (out_dir / "index.html").write_text(moved(paper.short, f"../../{found.paper}/index.html"), encoding="utf-8")


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
    (out_dir / "paper.bib").write_text(paper.bibtex(), encoding="utf-8")
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
