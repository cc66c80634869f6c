"""Prints the verdicts of a report, and pages without their figures, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text as Styled

from shared.reports import document as doc
from shared.reports.page import render
from shared.reports.verdicts import Report, found_text, in_short

STYLES = {
    "reproduced": "green", "contradicted": "red", "inconclusive": "yellow", "verified": "green", "refuted": "red",
    "not tested": "dim", "in part": "yellow", "mixed": "yellow",
}  # fmt: skip


def print_verdicts(folder: Path, console: Console | None = None) -> None:
    """Print a row per claim of a report, and where its pages are.

    Args:
        folder: ``reports/<scale>/<paper>``.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: there is no report.
    """
    console = console or Console()
    claims = [*Report(folder).claims.values()]
    table = Table(title=f"{claims[0]['paper']}: what the runs say of its claims", title_justify="left")
    table.add_column("Claim", no_wrap=True)
    for column in ("Verdict", "Effect", "What was tested"):
        table.add_column(column)
    for claim in claims:
        how = f": {claim['how']}" if claim["how"] else ""
        verdict = Styled.assemble((claim["verdict"], STYLES[claim["verdict"]]), how)
        table.add_row(claim["id"], verdict, Styled(found_text(claim)), Styled(doc.sentence(in_short(claim))))
    console.print(table)
    page = folder.parents[1] / folder.name / "index.html"
    console.print(f"Open {page} in a browser, or read {folder / 'README.md'}.", soft_wrap=True)


def print_blocks(blocks: Sequence[doc.Block], console: Console) -> None:
    """Print a page's words, lists and tables; figures stay with the page."""
    console.print(Markdown(render(_unfolded(blocks), "md", title="", folder=Path())))


def _unfolded(blocks: Sequence[doc.Block]) -> list[doc.Block]:
    found: list[doc.Block] = []
    for block in blocks:
        if isinstance(block, doc.Details):
            found += [doc.Heading(block.summary, level=3), *_unfolded(block.blocks)]
        elif not isinstance(block, doc.Figure):
            found.append(block)
    return found
