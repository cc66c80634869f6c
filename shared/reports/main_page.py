"""The main page: what holds, of all papers, and where to read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims.better import SIDES
from shared.claims.outcomes import VERDICTS
from shared.claims.words import number_of
from shared.reports.across import across_papers
from shared.reports.beside import beside_the_papers
from shared.reports.document import (
    Badge,
    Block,
    Bullets,
    Cell,
    Grid,
    Heading,
    Link,
    Paragraph,
    Strong,
    Table,
    Text,
    hash_text,
    parts,
)
from shared.reports.paper import Paper
from shared.reports.replicated import Replicated
from shared.reports.verdicts import ALIGN, COLUMNS, KINDS, claim_row, in_short, rules

TITLE = "Attention, replicated"
NOTHING = "No report has been made yet."
BASES = {
    "with small models, trained in minutes or hours of two cores": ("generated", "standard data", "paper's data"),
    "without training": ("measured", "identity"),
}
"""What decides, and the kinds of evidence that come from it."""
MEANINGS = {
    "reproduced": "what is claimed is surely there",
    "contradicted": "what is claimed is surely not there, or too small to matter",
    "inconclusive": "neither, or the models had not learned enough to tell",
    "verified": "an identity that holds",
    "refuted": "an identity that does not hold",
    "not tested": "no run could decide it; its card says why",
}


def main_page(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[Block]:
    """What the main page shows.

    Args:
        papers: with reports.
        folder: where the page will lie.
        facts: folder's name to the facts of a paper.
    """
    if not papers:
        return [Heading(TITLE, level=1), Paragraph(NOTHING)]
    return [
        Heading(TITLE, level=1),
        *_result([claim for paper in papers for claim in paper.claims], len(papers)),
        _grid(papers, folder),
        Bullets([(Badge(verdict), f" {MEANINGS[verdict]}.") for verdict in VERDICTS]),
        Heading("All claims"),
        _table(papers, folder),
        *beside_the_papers(papers, folder),
        *across_papers([report for paper in papers for report in paper.reports], folder),
        *_timeline(papers, folder, facts),
        Heading("How a verdict comes about"),
        rules(),
        *_made(papers),
    ]


def _result(claims: Sequence[Mapping[str, Any]], papers: int) -> list[Block]:
    """One sentence of result and one of limits."""
    counts = Counter(claim["verdict"] for claim in claims)
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    basis = decided_by(claims)
    return [
        Paragraph(
            (f"{number_of(len(claims), 'claim')} of {number_of(papers, 'paper')} on attention: ", Strong(listed), ".")
        ),
        Paragraph(f"{basis} Directions of effects compare with the papers', scores do not.".lstrip()),
    ]


def decided_by(claims: Sequence[Mapping[str, Any]]) -> str:
    """A sentence on how many claims are decided by which kind of evidence; empty where none is."""
    decided = Counter(_evidence(claim) for claim in claims if claim["verdict"] in SIDES)
    said = []
    for how, kinds in BASES.items():
        if found := [f"{decided[kind]} by {KINDS[kind]}" for kind in kinds if decided[kind]]:
            said.append(f"{', '.join(found)}, {how}")
    return f"Decided: {'; '.join(said)}." if said else ""


def _made(papers: Sequence[Replicated]) -> list[Block]:
    """Which code the runs behind all verdicts had, and when the last of them ended."""
    claims = [claim for paper in papers for claim in paper.claims]
    commits = {hash_text(commit) for claim in claims for commit in claim.get("commits", ())}
    ended = [claim["ended"] for claim in claims if claim.get("ended")]
    if not commits:
        return []
    last = f" The last one ended on {max(ended)[:10]}." if ended else ""
    said = f"The runs behind these verdicts are of the commits {', '.join(sorted(commits))}.{last}"
    return [Heading("Which runs these are"), Paragraph(said)]


def _evidence(claim: Mapping[str, Any]) -> str:
    lead = claim["lead"]
    return "identity" if lead is not None and lead["kind"] == "exact" else str(claim["evidence"])


def _grid(papers: Sequence[Replicated], folder: Path) -> Grid:
    return Grid([
        (
            Link(paper.title, paper.page(paper.claims[0], folder)),
            [_cell(claim, paper.page(claim, folder)) for claim in paper.claims],
        )
        for paper in papers
    ])  # fmt: skip


def _cell(claim: Mapping[str, Any], page: str) -> Cell:
    return Cell(claim["id"], Badge(claim["verdict"]), in_short(claim), f"{page}#{claim['id']}")


def _table(papers: Sequence[Replicated], folder: Path) -> Table:
    """A row for each claim, of which a reader can choose those of a paper, a verdict or a kind of evidence."""
    rows: list[list[Text]] = [
        [paper.title, *claim_row(claim, paper.page(claim, folder)), paper.others(claim["id"])]
        for paper in papers
        for claim in paper.claims
    ]
    return Table(
        ("Paper", *COLUMNS, "Scale"),
        rows,
        f"l{ALIGN}l",
        stacked=True,
        filters=("Paper", "Verdict", "Evidence", "Scale"),
    )


def _timeline(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[Block]:
    """What each paper adds to attention, in the order of their years."""
    known = [(facts[p.paper], p) for p in papers if p.paper in facts and facts[p.paper].mechanism is not None]
    items: list[Text] = [
        (
            Strong(str(paper.year)),
            " ",
            Link(paper.short, reported.page(reported.claims[0], folder)),
            f": {paper.mechanism}",
        )
        for paper, reported in sorted(known, key=lambda pair: pair[0].year)
    ]
    return [Heading("Attention, year by year"), Bullets([tuple(parts(item)) for item in items])] if items else []
