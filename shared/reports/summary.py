"""The main page over all reports, and the verdict tables inside the README files."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.better import SIDES
from shared.claims.outcomes import VERDICTS
from shared.claims.scales import TESTS
from shared.errors import ReplicationError
from shared.reports.document import Block, Bullets, Inline, Link, Paragraph, Table, Text, plain
from shared.reports.main_page import TITLE, decided_by, main_page
from shared.reports.page import render, write_page
from shared.reports.paper import Paper
from shared.reports.replicated import Replicated, Report, load_reports, replicated
from shared.reports.scales import link_to
from shared.reports.verdicts import ALIGN, COLUMNS, claim_row, in_short

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"
BETTER = "Where a paper has several reports, the better evidence on each claim is counted (docs/EVIDENCE.md)."


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
    blocks = main_page(replicated(reports), reports_dir, papers)
    write_page(blocks, reports_dir, title=TITLE)
    shown = replicated([report for report in reports if report.scale != TESTS])
    for readme in readmes:
        if readme.parent.parent.name == "replications":
            part = claim_blocks([each for each in shown if each.paper == readme.parent.name], readme.parent)
        else:
            part = count_blocks(shown, readme.parent)
        _replace_part(readme, render(_or_none(part), "md", title="", folder=readme.parent))


def count_blocks(papers: Sequence[Replicated], base: Path) -> list[Block]:
    """How often there is each verdict, a row for each paper with links relative to ``base``; [] without reports."""
    if not papers:
        return []
    counts = [Counter(claim["verdict"] for claim in paper.claims) for paper in papers]
    rows: list[list[Text]] = [
        [paper.title, _links(paper, base), *(plain(count[verdict], 0) for verdict in VERDICTS)]
        for paper, count in zip(papers, counts, strict=True)
    ]
    table = Table(("Paper", "Reports", *(v.capitalize() for v in VERDICTS)), rows, "ll" + "r" * len(VERDICTS))
    basis = decided_by([claim for paper in papers for claim in paper.claims])
    better = BETTER if any(len(paper.reports) > 1 for paper in papers) else ""
    said = [Paragraph(sentence) for sentence in (basis, better) if sentence]
    return [table, *said, *_against(papers, base)]


def _against(papers: Sequence[Replicated], base: Path) -> list[Block]:
    """The claims that did not hold, each a link to its card."""
    against = [(paper, each) for paper in papers for each in paper.claims if SIDES.get(each["verdict"]) == "against"]
    found = []
    for paper, claim in against:
        link = Link(str(claim["id"]), f"{paper.page(claim, base)}#{claim['id']}")
        found.append((link, f": {in_short(claim)} ({paper.title})"))
    return [Paragraph("These claims did not hold:"), Bullets(found)] if found else []


def claim_blocks(papers: Sequence[Replicated], base: Path) -> list[Block]:
    """A table of all claims for each paper, after links relative to ``base``; [] without reports."""
    blocks: list[Block] = []
    for paper in papers:
        rows = [[*claim_row(claim, paper.page(claim, base)), paper.others(claim["id"])] for claim in paper.claims]
        said = f"{paper.title}, " + (
            "reports at these scales: " if len(paper.reports) > 1 else "report at this scale: "
        )
        blocks.append(Paragraph((said, *_links(paper, base), ".")))
        blocks.append(Table((*COLUMNS, "Scale"), rows, f"{ALIGN}l", stacked=True))
    return blocks


def _or_none(blocks: list[Block]) -> list[Block]:
    return blocks or [Paragraph("No report has been made yet.")]


def _link(report: Report, base: Path, words: str = "") -> Link:
    return link_to(report.folder / "README.md", words or report.title, base)


def _links(paper: Replicated, base: Path) -> tuple[Inline, ...]:
    """The scales of a paper's reports, each a link."""
    found = [part for report in paper.reports for part in (", ", _link(report, base, report.scale))]
    return tuple(found[1:])


def _replace_part(readme: Path, part: str) -> None:
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ReplicationError(f"{readme} needs the lines '{BEGIN}' and '{END}', once each, in this order.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    partial = readme.with_name(f".{readme.name}.partial")
    partial.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
    partial.replace(readme)
