"""The report of one paper at one scale: verdicts, tables, figures, provenance."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.comparisons import Floor
from shared.claims.outcomes import VERDICTS, Decision, Evidence
from shared.claims.results import load_results
from shared.claims.schema import load_claims
from shared.claims.verdicts import decide
from shared.reports import sections
from shared.reports.across import FILE as RUNS
from shared.reports.across import run_entries
from shared.reports.answer import answer
from shared.reports.claim_sections import Shown, claim_sections
from shared.reports.curves import write_curves
from shared.reports.document import Block, Bullets, CodeBlock, Heading, Link, Paragraph, Text
from shared.reports.exhibits import Exhibit, Results, by_claim
from shared.reports.explorer import gathered
from shared.reports.kind import KindReport
from shared.reports.learned import learned_blocks
from shared.reports.page import ALONE, Place, write_page
from shared.reports.panels import by_task
from shared.reports.paper import Paper
from shared.reports.plans import NO_PLAN, Frozen, deciding_records, plan_blocks, since_frozen
from shared.reports.scales import OtherScale, overview
from shared.reports.standing import standing


def write_report(
    paper_dir: Path,
    runs_dir: Path,
    out_dir: Path,
    *,
    scale: str,
    left_out: Mapping[str, str] | None = None,
    judged: Collection[str] | None = None,
    lent: Collection[str] = (),
    deviations: Sequence[str] = (),
    figures: Sequence[Exhibit] = (),
    kind: KindReport | None = None,
    evidence: Mapping[str, Evidence] | None = None,
    frozen: Frozen = NO_PLAN,
    larger: str | None = None,
    others: Sequence[OtherScale] = (),
    place: Place = ALONE,
    stale: Sequence[str] = (),
    data: Mapping[str, Sequence[Block]] | None = None,
) -> list[Decision]:
    """Judge a paper's claims by its runs; write README.md, index.html, the json and csv files, figures.

    Args:
        paper_dir, runs_dir: ``replications/<paper>``, with paper.yaml and claims.yaml; ``runs/<scale>/<paper>``.
        out_dir: ``reports/<scale>/<paper>``; its figures folder is made anew.
        scale, deviations, lent: of the runs, and from the paper at this scale; variants run by another paper.
        left_out, judged: variant to the reason why it does not run at this scale; those that do, by default all found.
        figures: what the paper shows (:func:`shared.reports.exhibits.load_exhibits`); claims know their metrics.
        kind: what reports of the paper's kind of task show; its measures must be registered.
        evidence, data: variant to what its data are, see :func:`decide`; task to what is said of its data.
        frozen, larger: the plan of these runs, and the scale that is to decide what they did not.
        others: what the paper's reports at other scales say, to be shown beside the verdicts. No verdict depends on it.
        place, stale: of the page among those of other papers; variants trained with other settings than today's.

    Raises:
        ReplicationError: a file is missing or wrong, or runs do not fit together.
    """
    paper = Paper.load(paper_dir / "paper.yaml")
    results = _completed(load_results(runs_dir, left_out, judged), figures)
    claims = load_claims(paper_dir / "claims.yaml", scale)
    planned = None if larger is None else (larger, load_claims(paper_dir / "claims.yaml", larger))
    decisions = decide(claims, results, scale, evidence=evidence, changed=frozen.changed)
    shutil.rmtree(folder := out_dir / "figures", ignore_errors=True)
    exhibits, explorer = gathered(by_claim(figures, results, folder))
    stages = f"replications/{paper_dir.name}/{scale}/dvc.yaml"
    shown = Shown(results, claims, folder, planned, exhibits, stages, frozen, lent)
    blocks = [
        Heading(f"{paper.short}, replicated at {scale} scale", level=1),
        sections.citation(paper),
        *answer(decisions, folder),
        *standing(results, stale),
        *overview(decisions, others, out_dir),
        *plan_blocks(frozen, [decision.claim.id for decision in decisions]),
        *claim_sections(decisions, shown),
        *explorer,
        *_of_all_runs(paper, shown, decisions, kind or KindReport(), scale, deviations, data, evidence),
    ]
    write_page(blocks, out_dir, title=f"{paper.short}, {scale} scale", place=place)
    _write_numbers(paper, decisions, results, claims.floors, frozen, out_dir)
    return decisions


def _completed(results: Results, figures: Sequence[Exhibit]) -> Results:
    """The results with the measures that only figures know."""
    for exhibit in figures:
        results = exhibit.completed(results)
    return results


def _of_all_runs(
    paper: Paper,
    shown: Shown,
    decisions: Sequence[Decision],
    kind: KindReport,
    scale: str,
    deviations: Sequence[str],
    data: Mapping[str, Sequence[Block]] | None,
    evidence: Mapping[str, Evidence] | None,
) -> list[Block]:
    """What is of no single claim: learning, further figures, scores, costs, deviations, provenance, files."""
    tasks, further = by_task(shown.results), shown.exhibits.get("", ())
    return [
        *learned_blocks(shown.claims.floors, tasks),
        *([Heading("Further figures"), *further] if further else ()),
        *sections.our_results(tasks, shown.results, kind, data),
        *kind.sections(decisions, shown.results),
        *sections.of_runs(paper, tasks, scale, deviations, evidence),
        *_made_by(shown.stages),
    ]


def _made_by(stages: str) -> list[Block]:
    """The command that makes the page, and its numbers as files."""
    files = {
        "claims.json": "every verdict with its comparisons, tests and seeds",
        "metrics.json": "mean scores of all variants",
        RUNS: "data, scores with intervals, and costs of every trained variant",
        "curves.csv": "what validation recorded of every seed",
        "paper.bib": "the paper, for BibTeX",
    }
    items: list[Text] = [(Link(name, name), f": {said}") for name, said in files.items()]
    return [
        Heading("Make it again, or take it along"),
        Paragraph(
            "This command makes everything on this page from the data on, and what is planned at this scale and is not "
            "here yet; what has not changed is kept:"
        ),
        CodeBlock(f"dvc repro {stages}"),
        Bullets(items),
    ]


def _write_numbers(
    paper: Paper,
    decisions: Sequence[Decision],
    results: Results,
    floors: Mapping[str, Floor],
    frozen: Frozen,
    out_dir: Path,
) -> None:
    """The files that the page offers, see :func:`_made_by`."""
    entries = [
        decision.to_json()
        | {
            "plan": since_frozen(frozen, decision, results), "commits": _commits(decision, results),
            "ended": _ended(decision, results), "paper": paper.short,
        }
        for decision in decisions
    ]  # fmt: skip
    _write_json(out_dir / "claims.json", entries)
    counts = Counter(decision.verdict for decision in decisions)
    means = {name: dict(result.mean) for name, result in sorted(results.items()) if result.mean}
    _write_json(out_dir / "metrics.json", {"claims": {kind: counts[kind] for kind in VERDICTS}, "variants": means})
    _write_json(out_dir / RUNS, run_entries(results, floors))
    write_curves(results, out_dir / "curves.csv")
    (out_dir / "paper.bib").write_text(paper.bibtex(), encoding="utf-8")


def _commits(decision: Decision, results: Results) -> list[str]:
    """Of the code that has made the runs behind a verdict."""
    return sorted({sections.commit_of(record) for record in deciding_records(decision, results)})


def _ended(decision: Decision, results: Results) -> str | None:
    """When the last of the runs behind a verdict ended, in ISO 8601."""
    ended = (record["finished"] for record in deciding_records(decision, results) if "finished" in record)
    return max(ended, default=None)


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
