"""Prints the verdicts of a report, and pages without their figures, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text as Styled

from shared.reports import document as doc
from shared.reports.scales import read_claims
from shared.reports.verdicts import found_text, in_short

STYLES = {
    "reproduced": "green", "contradicted": "red", "inconclusive": "yellow", "verified": "green", "refuted": "red",
    "not tested": "dim",
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
    claims = read_claims(folder)
    table = Table(title=f"{claims[0]['paper']}: what the runs say of its claims", title_justify="left")
    table.add_column("Claim", no_wrap=True)
    for column in ("Verdict", "Effect", "What was tested"):
        table.add_column(column)
    for claim in claims:
        how = f": {claim['how']}" if claim["how"] else ""
        verdict = Styled.assemble((claim["verdict"], STYLES[claim["verdict"]]), how)
        table.add_row(claim["id"], verdict, Styled(found_text(claim)), Styled(doc.sentence(in_short(claim))))
    console.print(table)
    console.print(f"Open {folder / 'index.html'} in a browser, or read {folder / 'README.md'}.", soft_wrap=True)


def print_blocks(blocks: Sequence[doc.Block], console: Console) -> None:
    """Print a page's words, lists and tables; figures stay with the page."""
    said = [block for block in blocks if not isinstance(block, doc.Figure)]
    for block, following in zip(said, [*said[1:], None], strict=True):
        if isinstance(block, doc.Heading):
            if following is None or (isinstance(following, doc.Heading) and following.level <= block.level):
                continue
            console.print()
            console.print(Styled(doc.plain_text(block.text), style="bold"))
        elif isinstance(block, doc.Paragraph):
            console.print(doc.plain_text(block.text), markup=False, soft_wrap=True)
        elif isinstance(block, doc.Bullets):
            for item in block.items:
                console.print(f"- {doc.plain_text(item)}", markup=False, soft_wrap=True)
        elif isinstance(block, doc.Details):
            console.print(Styled(block.summary, style="underline"))
            print_blocks(block.blocks, console)
        elif isinstance(block, doc.Table):
            table = Table(box=None, pad_edge=False)
            for title, letter in zip(block.columns, block.letters, strict=True):
                table.add_column(title, justify="right" if letter == "r" else "left", overflow="fold")
            for row in block.rows:
                table.add_row(*(styled(cell) for cell in row))
            console.print(table)


def styled(text: doc.Text) -> Styled:
    """Words with their emphasis."""
    return Styled.assemble(*((words, "bold" if mark == "strong" else "") for mark, _, words in doc.parts(text)))
