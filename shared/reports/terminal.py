"""Prints the verdicts of a report, and pages without their figures, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text as Styled

from shared.reports.document import Block, Bullets, Details, Figure, Heading, Paragraph, Strong, plain_text, sentence
from shared.reports.document import Table as TableBlock
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
    table.add_column("Verdict")
    table.add_column("Effect")
    table.add_column("What was tested")
    for claim in claims:
        verdict = claim["verdict"]
        how = f": {claim['how']}" if claim["how"] else ""
        tested = escape(sentence(in_short(claim)))
        table.add_row(claim["id"], f"[{STYLES[verdict]}]{verdict}[/]{how}", escape(found_text(claim)), tested)
    console.print(table)
    console.print(f"Open {folder / 'index.html'} in a browser, or read {folder / 'README.md'}.", soft_wrap=True)


def print_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print a page's words, lists and tables; figures stay with the page."""
    said = [block for block in blocks if not isinstance(block, Figure)]
    for block, following in zip(said, [*said[1:], None], strict=True):
        if isinstance(block, Heading):
            if following is None or (isinstance(following, Heading) and following.level <= block.level):
                continue
            console.print()
            console.print(Styled(plain_text(block.text), style="bold"))
        elif isinstance(block, Paragraph):
            console.print(plain_text(block.text), markup=False, soft_wrap=True)
        elif isinstance(block, Bullets):
            for item in block.items:
                console.print(f"- {plain_text(item)}", markup=False, soft_wrap=True)
        elif isinstance(block, Details):
            console.print(Styled(block.summary, style="underline"))
            print_blocks(block.blocks, console)
        elif isinstance(block, TableBlock):
            console.print(_table(block))


def _table(block: TableBlock) -> Table:
    table = Table(box=None, pad_edge=False)
    for title, align in zip(block.columns, block.align, strict=True):
        table.add_column(title, justify="right" if align == "r" else "left", overflow="fold")
    for row in block.rows:
        table.add_row(*(Styled(plain_text(cell), style="bold" if isinstance(cell, Strong) else "") for cell in row))
    return table
