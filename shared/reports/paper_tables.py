"""The tables of a paper, with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Mapping

from shared.claims.results import RunResults
from shared.metrics.registry import known
from shared.reports.document import SPACE, Block, Heading, Paragraph, Table, Text, plain, signed, typeset
from shared.reports.paper import Column, Paper, PaperTable
from shared.reports.studies import number

Tasks = Mapping[str, list[RunResults]]


def beside_the_paper(paper: Paper, tasks: Tasks) -> list[Block]:
    """The paper's tables, with our number and its distance where a variant corresponds."""
    blocks: list[Block] = [
        Heading("The paper's tables beside ours"),
        Paragraph(
            "Ours come from another corpus, at another scale of model and training: compare the order of the "
            "rows, not the numbers. The delta (ours minus the paper's) says how far apart they are."
        ),
    ]
    for table in paper.tables:
        blocks.append(Heading(f"{table.where}: {table.title}", level=3))
        blocks.append(_paper_table(table, tasks))
        if table.note:
            blocks.append(Paragraph(table.note))
    return blocks


def _paper_table(table: PaperTable, tasks: Tasks) -> Table:
    columns, align = ["Model"], "l"
    cells: list[list[Text]] = [[table.label(row)] for row in range(len(table.rows))]
    for column in table.columns:
        printed = [row[column.key] for row in table.rows]
        numeric = all(value is None or isinstance(value, int | float) for value in printed)
        decimals = max((_decimals(v) for v in printed if isinstance(v, float)), default=0)
        columns.append(column.title)
        align += "r" if numeric else "l"
        for cell, value in zip(cells, printed, strict=True):
            cell.append(plain(value, decimals) if isinstance(value, float) else written(value))
        for task, runs in tasks.items():
            ours = [_ours(table, row, column, runs) for row in range(len(table.rows))]
            if any(text is not None for text in ours):
                columns.append(f"{column.title}, ours on {task}{' (Δ)' * numeric}")
                align += "r"
                for cell, text in zip(cells, ours, strict=True):
                    cell.append(text or "–")
    return Table(columns, cells, align)


def _decimals(value: float) -> int:
    """Digits after the decimal point in the shortest form of a number, or of its mantissa in scientific notation."""
    return len(str(value).partition("e")[0].partition(".")[2])


def written(value: object) -> str:
    """A cell of one of the paper's tables."""
    if value is None:
        return "–"
    return typeset(str(value)) if isinstance(value, float) else str(value)


def _ours(table: PaperTable, row: int, column: Column, runs: list[RunResults]) -> str | None:
    """The number of a variant that corresponds, with its distance from the paper's; None if there is none."""
    wanted, metric, theirs = table.variants(row), table.metric(row, column) or "", table.rows[row][column.key]
    ours = next((run.mean[metric] for run in runs if run.variant in wanted and metric in run.mean), None)
    if ours is None:
        return None
    shown = plain(ours, 2) if known(metric) else number(ours)
    return f"{shown}{SPACE}({signed(ours - theirs, 2)})" if isinstance(theirs, int | float) else shown
