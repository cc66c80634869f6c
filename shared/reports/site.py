"""The main page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path

from shared.claims.outcomes import SIDES, VERDICTS
from shared.claims.scales import TESTS
from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.reports import document as doc
from shared.reports.across import across_papers
from shared.reports.document import badge, hash_text, link, plain, strong
from shared.reports.forest import Effect, draw_forest
from shared.reports.page import render, write_page
from shared.reports.paper import Paper
from shared.reports.scales import Replicated, group_by_paper, load_reports
from shared.reports.verdicts import (
    ALIGN,
    COLUMNS,
    KINDS,
    Entry,
    amount,
    claim_row,
    counts_text,
    effect_text,
    in_short,
    rules,
    verdict_text,
    with_unit,
)

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
TITLE = "Attention, replicated"
NOTHING = "No report has been made yet."
BETTER = "Where a paper has several reports, the better evidence on each claim is counted (docs/EVIDENCE.md)."
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
CAPTION = (
    "Our effects and their 95 % intervals as shares of the paper's effect: at 1 it is the paper's, at 0 there is none, "
    "and left of 0 it is the opposite. Ratios are compared as logarithms."
)


def summarize(reports_dir: Path, readmes: list[Path], papers: Mapping[str, Paper] | None = None) -> None:
    """Write the main page of the reports folder, and the verdict part of READMEs.

    Everywhere the better evidence of a paper's reports is shown. A README in ``replications/<paper>/`` gets the
    verdicts of that paper's claims. Any other README gets the number of each verdict for all papers. The smoke scale
    tests the pipeline only, so only the reports folder lists it, and only of a paper that has no other report.

    Args:
        reports_dir: the folder of all reports.
        readmes: that are changed.
        papers: folder's name to the facts of a paper, in the order of the page.

    Raises:
        ReplicationError: a report cannot be read, or a README lacks the two marker lines.
    """
    papers = papers or {}
    order = {name: place for place, name in enumerate(papers)}
    reports = sorted(load_reports(reports_dir), key=lambda report: order.get(report.paper, len(order)))
    shutil.rmtree(reports_dir / "figures", ignore_errors=True)  # some may no longer be shown
    write_page(main_page(group_by_paper(reports), reports_dir, papers), reports_dir, title=TITLE)
    shown = group_by_paper([report for report in reports if report.scale != TESTS])
    for readme in readmes:
        if readme.parent.parent.name == "replications":
            own = [paper for paper in shown if paper.paper == readme.parent.name]
            part = [block for paper in own for block in _of_paper(paper, readme.parent)]
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(part or [doc.Paragraph(NOTHING)], "md", title="", folder=readme.parent))


def main_page(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[doc.Block]:
    """What the main page shows: what holds, of all papers, and where to read on.

    Args:
        papers: with reports.
        folder: where the page will lie.
        facts: folder's name to the facts of a paper.
    """
    if not papers:
        return [doc.Heading(TITLE, level=1), doc.Paragraph(NOTHING)]
    claims = [claim for paper in papers for claim in paper.claims]
    count = f"{number_of(len(claims), 'claim')} of {number_of(len(papers), 'paper')} on attention"
    counts = counts_text([claim["verdict"] for claim in claims])
    compare = "Directions of effects compare with the papers', scores do not."
    rows = [
        [paper.title, *claim_row(claim, paper.page(claim, folder)), paper.others(claim["id"])]
        for paper in papers
        for claim in paper.claims
    ]
    return [
        doc.Heading(TITLE, level=1),
        doc.Paragraph(f"{count}: {strong(counts)}."),
        doc.Paragraph(f"{decided_by(claims)} {compare}".lstrip()),
        doc.Grid([
            (paper.title, paper.page(paper.claims[0], folder), [_cell(paper, claim, folder) for claim in paper.claims])
            for paper in papers
        ]),
        doc.Bullets([f"{badge(verdict)} {MEANINGS[verdict]}." for verdict in VERDICTS]),
        doc.Heading("All claims"),
        doc.Table(("Paper", *COLUMNS, "Scale"), rows, f"l{ALIGN}l", True, ("Paper", "Verdict", "Evidence", "Scale")),
        *beside_the_papers(papers, folder),
        *across_papers([report for paper in papers for report in paper.reports], folder),
        *_timeline(papers, folder, facts),
        doc.Heading("How a verdict comes about"),
        rules(),
        *_made(claims),
    ]  # fmt: skip


def _cell(paper: Replicated, claim: Entry, folder: Path) -> doc.Cell:
    return doc.Cell(claim["id"], claim["verdict"], in_short(claim), paper.card(claim, folder))


def decided_by(claims: Sequence[Entry]) -> str:
    """A sentence on how many claims are decided by which kind of evidence; empty where none is."""
    leads = [(claim["lead"] or {}, claim["evidence"]) for claim in claims if claim["verdict"] in SIDES]
    decided = Counter("identity" if lead.get("kind") == "exact" else evidence for lead, evidence in leads)
    said = []
    for how, kinds in BASES.items():
        if found := [f"{decided[kind]} by {KINDS[kind]}" for kind in kinds if decided[kind]]:
            said.append(f"{', '.join(found)}, {how}")
    return f"Decided: {'; '.join(said)}." if said else ""


def beside_the_papers(papers: Sequence[Replicated], folder: Path) -> list[doc.Block]:
    """A forest plot and a table of the claims whose effect has the unit of the paper's; [] where there are none.

    Args:
        papers: with reports.
        folder: of the page; its ``figures`` get the plot.
    """
    known = [
        (paper, claim, claim["lead"])
        for paper in papers
        for claim in paper.claims
        if claim["lead"] is not None and claim["lead"].get("paper") is not None
    ]
    if not known:
        return []
    rows = [
        [
            link(claim["id"], paper.card(claim, folder)), verdict_text(claim), effect_text(lead),
            with_unit(amount(lead, lead["paper"]), lead),
        ]
        for paper, claim, lead in known
    ]  # fmt: skip
    effects = []
    for _, claim, lead in known:
        unit = log if lead["scale"] == "log" else float
        if lead["effect"] is not None and (size := unit(lead["paper"])):
            value, *ends = (unit(number) / size for number in (lead["effect"], *(lead["interval"] or ())))
            effects.append(Effect(claim["id"], claim["verdict"], value, tuple(ends)))
    figures = []
    if effects:
        path = folder / "figures" / "beside.png"
        draw_forest(effects, path, "Effect, as a share of the paper's")
        seen = f"Effects of {', '.join(each.claim for each in effects)} as shares of the papers' effects"
        figures.append(doc.Figure(path, CAPTION, seen))
    said = "Where the paper's effect has the same unit. Data and models differ; an inconclusive effect says nothing "
    return [
        doc.Heading("Effects beside the papers' own"),
        doc.Paragraph(f"{said}about the paper's."),
        *figures,
        doc.Table(("Claim", "Verdict", "Effect here, 95 % interval", "In the paper"), rows, "llrr"),
    ]


def _timeline(papers: Sequence[Replicated], folder: Path, facts: Mapping[str, Paper]) -> list[doc.Block]:
    """What each paper adds to attention, in the order of their years."""
    known = [(facts[each.paper], each) for each in papers if each.paper in facts and facts[each.paper].mechanism]
    items = [
        f"{strong(str(paper.year))} {link(paper.short, reported.page(reported.claims[0], folder))}: {paper.mechanism}"
        for paper, reported in sorted(known, key=lambda pair: pair[0].year)
    ]
    return [doc.Heading("Attention, year by year"), doc.Bullets(items)] if items else []


def _made(claims: Sequence[Entry]) -> list[doc.Block]:
    """Which code the runs behind all verdicts had, and when the last of them ended."""
    commits = {hash_text(commit) for claim in claims for commit in claim.get("commits", ())}
    ended = [claim["ended"] for claim in claims if claim.get("ended")]
    if not commits:
        return []
    last = f" The last one ended on {max(ended)[:10]}." if ended else ""
    said = f"The runs behind these verdicts are of the commits {', '.join(sorted(commits))}.{last}"
    return [doc.Heading("Which runs these are"), doc.Paragraph(said)]


def count_blocks(papers: Sequence[Replicated], base: Path) -> list[doc.Block]:
    """How often there is each verdict, a row for each paper with links relative to ``base``; [] without reports.

    Below, what decides, and the claims that did not hold, each a link to its card.
    """
    if not papers:
        return []
    rows: list[list[doc.Text]] = []
    for paper in papers:
        count = Counter(claim["verdict"] for claim in paper.claims)
        rows.append([paper.title, _links(paper, base), *(plain(count[verdict], 0) for verdict in VERDICTS)])
    table = doc.Table(("Paper", "Reports", *(v.capitalize() for v in VERDICTS)), rows, "ll" + "r" * len(VERDICTS))
    basis = decided_by([claim for paper in papers for claim in paper.claims])
    counted = BETTER if any(len(paper.reports) > 1 for paper in papers) else ""
    against = [
        f"{link(claim['id'], paper.card(claim, base))}: {in_short(claim)} ({paper.title})"
        for paper in papers
        for claim in paper.claims
        if SIDES.get(claim["verdict"]) == "against"
    ]
    blocks: list[doc.Block] = [table, *(doc.Paragraph(said) for said in (basis, counted) if said)]
    return [*blocks, doc.Paragraph("These claims did not hold:"), doc.Bullets(against)] if against else blocks


def _of_paper(paper: Replicated, base: Path) -> list[doc.Block]:
    """A table of all claims of a paper, after links relative to ``base``."""
    rows = [[*claim_row(claim, paper.page(claim, base)), paper.others(claim["id"])] for claim in paper.claims]
    at = "reports at these scales" if len(paper.reports) > 1 else "report at this scale"
    return [
        doc.Paragraph(f"{paper.title}, {at}: {_links(paper, base)}."),
        doc.Table((*COLUMNS, "Scale"), rows, f"{ALIGN}l", stacked=True),
    ]


def _links(paper: Replicated, base: Path) -> str:
    """The scales of a paper's reports, each a link."""
    return ", ".join(link(report.scale, report.page(base)) for report in paper.reports)


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    partial = readme.with_name(f".{readme.name}.partial")
    partial.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
    partial.replace(readme)
