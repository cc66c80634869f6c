"""The report of one paper at one scale: verdicts, cards, tables, figures, provenance; and its numbers as files."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

from shared.claims.outcomes import VERDICTS, Decision, Evidence, better
from shared.claims.results import load_results
from shared.claims.scales import SCALES
from shared.claims.schema import load_claims
from shared.claims.verdicts import decide
from shared.claims.words import number_of
from shared.data.cards import Card
from shared.reports import document as doc
from shared.reports import runs, verdicts
from shared.reports.cards import Findings, claim_cards
from shared.reports.curves import write_curves
from shared.reports.document import plain_text, strong
from shared.reports.exhibits import Exhibit, KindReport, Results, Shows, by_task, draw_exhibits
from shared.reports.explorer import gather_maps
from shared.reports.figures import LINEAR, Effect, draw_forest
from shared.reports.page import Place, write_page
from shared.reports.paper import Paper
from shared.reports.plans import Frozen, deciding_records, plan_blocks, since_frozen, standing
from shared.reports.sentences import paragraphs, say
from shared.reports.verdicts import ALIGN, COLUMNS, Entry, Report

UNTESTED = "not tested"
WORDS = 80
"""The most words that the answer may have."""
LIMITS = " Models are small: directions of effects compare with the paper's, scores do not."
PARTS = {"train_pairs": "pairs", "lines": "lines", "images": "pictures"}
"""Settings of a corpus that take the first examples of a split, and what they count."""


def write_report(
    paper_dir: Path, runs_dir: Path, out_dir: Path, *, scale: str, left_out: Mapping[str, str] | None = None,
    judged: Collection[str] | None = None, deviations: Sequence[str] = (),
    figures: Sequence[Exhibit | Shows] = (), kind: KindReport | None = None,
    evidence: Mapping[str, Evidence] | None = None, frozen: Frozen | None = None,
    larger: tuple[str, Collection[str]] | None = None, others: Sequence[Report] = (), place: Place | None = None,
    stale: Sequence[str] = (), data: Mapping[str, Sequence[doc.Block]] | None = None,
) -> list[Decision]:  # fmt: skip
    """Judge a paper's claims by its runs; write README.md, index.html, the json and csv files, figures.

    Args:
        paper_dir, runs_dir: ``replications/<paper>``, with paper.yaml and claims.yaml; ``runs/<scale>/<paper>``.
        out_dir: ``reports/<scale>/<paper>``; its figures folder is made anew.
        scale, deviations: of the runs, and from the paper at this scale.
        left_out, judged: variant to the reason why it does not run at this scale; those that do, by default all found.
        figures: what the paper shows (:func:`shared.reports.exhibits.load_exhibits`); claims know their metrics.
        kind: what reports of the paper's kind of task show; its measures must be registered.
        evidence, data: variant to what its data are, see :func:`decide`; task to what is said of its data.
        frozen, larger: the plan; the scale that is to decide what this one does not, and the variants that run there.
        others: the paper's reports at other scales, to be shown beside the verdicts. No verdict depends on them.
        place, stale: of the page among those of other papers; variants trained with other settings than today's.

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
    tasks = by_task(results)
    shutil.rmtree(folder := out_dir / "figures", ignore_errors=True)
    exhibits, explorer = gather_maps(draw_exhibits(shows, results, folder))
    later = larger and (*larger, load_claims(paper_dir / "claims.yaml", larger[0]))
    found = Findings(paper_dir.name, scale, results, claims, entries, folder, later, exhibits)
    blocks = [
        doc.Heading(f"{paper.short}, replicated at {scale} scale", level=1),
        paper.citation(),
        *answer(decisions, entries, folder),
        *standing(results, stale),
        *overview(entries, others, out_dir),
        *plan_blocks(frozen, [claim.id for claim in claims.claims]),
        *claim_cards(found),
        *explorer,
        *runs.learned_blocks(claims.floors, tasks),
        *([doc.Heading("Further figures"), *exhibits[""]] if "" in exhibits else ()),
        *runs.our_results(tasks, results, kind, data),
        *kind.sections(decisions, results),
        *runs.cost(tasks),
        *runs.beside_the_paper(paper, tasks, scale, evidence),
        *runs.settings(paper, scale, deviations),
        *runs.provenance(tasks),
        *_to_take_along(found),
    ]
    write_page(blocks, out_dir, title=f"{paper.short}, {scale} scale", place=place)
    _write_numbers(found, paper, out_dir)
    return decisions


def _entry(decision: Decision, results: Results, frozen: Frozen, paper: str) -> dict[str, Any]:
    """The decision as claims.json has it, with its plan, the commits of its runs, and when the last of them ended."""
    records = deciding_records(decision, results)
    return decision.to_json() | {
        "plan": since_frozen(frozen, decision, records), "commits": sorted({runs.commit_of(each) for each in records}),
        "ended": max((each["finished"] for each in records if "finished" in each), default=None), "paper": paper,
        "design": frozen.ledger.designs.get(decision.claim.id),
        "machine": sorted({each["cpu"].partition(" (")[0] for each in records if "cpu" in each}),
    }  # fmt: skip


def _to_take_along(found: Findings) -> list[doc.Block]:
    """The command that makes the page, and its numbers as files."""
    files = doc.Bullets(paragraphs("files"))
    return [doc.Heading("Make it again, or take it along"), doc.Paragraph(say("again")), found.repro(), files]


def _write_numbers(found: Findings, paper: Paper, out_dir: Path) -> None:
    """The files that the page offers."""
    (out_dir / "paper.bib").write_text(paper.bibtex(), encoding="utf-8")
    counts = Counter(entry["verdict"] for entry in found.entries)
    means = {name: dict(result.mean) for name, result in sorted(found.results.items()) if result.mean}
    write_curves(found.results, out_dir / "curves.csv")
    _write_json(out_dir / "claims.json", found.entries)
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


def answer(decisions: Sequence[Decision], entries: Sequence[Entry], folder: Path) -> list[doc.Block]:
    """What came out in a few words, what it rests on, and a figure of the effects where there are any.

    Args:
        decisions, entries: on the claims, and as claims.json has them.
        folder: of figures.
    """
    blocks: list[doc.Block] = [doc.Paragraph(in_words(decisions, entries))]
    leads = [(entry, entry["lead"]) for entry in entries if entry["lead"] is not None]
    found = {"identity" if lead["kind"] == "exact" else entry["evidence"] for entry, lead in leads}
    if kinds := [name for each, name in verdicts.KINDS.items() if each in found]:
        limits = "" if entries[0]["scale"] == runs.PAPERS_OWN else LIMITS
        blocks.append(doc.Paragraph(f"The evidence: {', '.join(kinds)}.{limits}"))
    if ratios := [ratio for entry in entries if (ratio := relative(entry)) is not None]:
        path = folder / "effects.png"
        draw_forest(ratios, path, "Effect, in units of the smallest that matters", far=True)
        far = any(abs(end) > LINEAR for ratio in ratios for end in (ratio.value, *ratio.interval))
        equal = any(ratio.hollow for ratio in ratios)
        alt = f"Effects of {number_of(len(ratios), 'claim')} beside 0, no effect, and 1, the smallest that matters"
        blocks.append(doc.Figure(path, say("effects", equal=equal, far=LINEAR if far else 0), alt))
    return blocks


def in_words(decisions: Sequence[Decision], entries: Sequence[Entry]) -> str:
    """How often there is each verdict, and the claims of each with their effects, in at most :data:`WORDS` words.

    Where that is too long, some are left out and counted: first of those that are not tested, then of the most.
    """
    groups = {verdict: [_briefly(each) for each in entries if each["verdict"] == verdict] for verdict in VERDICTS}
    named = {verdict: len(group) for verdict, group in groups.items() if group}
    while True:
        said = verdicts.counts_by_sort(entries)
        for verdict, count in named.items():
            more = len(groups[verdict]) - count
            claims = groups[verdict][:count] + [f"{more} more"] * (more > 0)
            said += f" {strong(f'{verdict.capitalize()}:')} {'; '.join(claims)}."
        if len(plain_text(said).split()) <= WORDS or max(named.values()) == 1:
            return said
        named[max(named, key=lambda verdict: (named[verdict] > 1, verdict == "not tested", named[verdict]))] -= 1


def _briefly(entry: Entry) -> str:
    """A claim in short, and its effect if one was measured; the id of one that has no short form."""
    lead, name = entry["lead"], entry["in_short"] or entry["id"]
    if lead is None or lead["effect"] is None or not lead["relevant"]:  # an identity has no size that matters
        return str(name)
    return f"{name} ({verdicts.size_text(lead)})"


def relative(entry: Entry) -> Effect | None:
    """The effect that decides in units of the smallest that matters, ratios as logarithms; hollow of an equality.

    None of identities and where none is measured.
    """
    lead = entry["lead"]
    if lead is None or lead["effect"] is None or not lead["relevant"] or lead["interval"] is None:
        return None
    size = log if lead["scale"] == "log" else float
    effect, *ends = (size(value) / size(lead["relevant"]) for value in (lead["effect"], *lead["interval"]))
    return Effect(entry["id"], entry["verdict"], effect, tuple(ends), hollow=lead["kind"] == "equal")


def overview(entries: Sequence[Entry], others: Sequence[Report], folder: Path) -> list[doc.Block]:
    """The table of verdicts, with a column for each other scale, and folded how verdicts come about.

    Below the table: where the others come from, which are the better evidence, and where they disagree.

    Args:
        entries: of this report.
        others: of the same paper.
        folder: where the page will lie.
    """
    columns = (*COLUMNS, *(f"At {other.scale} scale" for other in others))
    rows = [[*verdicts.claim_row(entry), *(_cell(other, entry["id"]) for other in others)] for entry in entries]
    blocks: list[doc.Block] = [
        doc.Heading("Verdicts"),
        doc.Table(columns, rows, ALIGN + "l" * len(others), True),
    ]
    if others:
        own: Mapping[str, Entry] = {entry["id"]: entry for entry in entries}
        reports = [own, *(other.claims for other in others)]
        together = [[report[each["id"]] for report in reports if each["id"] in report] for each in entries]
        said = []
        for other in others:
            commits = sorted({commit for entry in other.claims.values() for commit in entry.get("commits", ())})
            said.append(say("elsewhere", report=other, page=other.page(folder), commits=commits))
        best: dict[str, list[str]] = {scale: [] for scale in (*SCALES, UNTESTED)}
        for entry in map(better, together):
            best[UNTESTED if entry["verdict"] == UNTESTED else entry["scale"]].append(entry["id"])
        said.append(say("best", untested=best.pop(UNTESTED), by_scale={at: ids for at, ids in best.items() if ids}))
        blocks.append(doc.Bullets([*said, *filter(None, map(verdicts.disagreement, together))]))
    return [*blocks, doc.Details("How a verdict comes about", [doc.Bullets(paragraphs("rules"))])]


def _cell(other: Report, claim: str) -> str:
    """Another scale's verdict on a claim, with effect and evidence; narrow pages show no heads, so it says which."""
    if (entry := other.claims.get(claim)) is None:
        return f"{other.scale}: no such claim"
    found = "" if entry["lead"] is None else f"; {verdicts.found_text(entry)}; {verdicts.evidence_text(entry)}"
    return f"{other.scale}: {verdicts.verdict_text(entry)}{found}"


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
