"""The tables of a paper, with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Mapping

from shared.claims.competence import is_trained
from shared.claims.outcomes import Evidence
from shared.claims.results import RunResults
from shared.metrics.registry import known
from shared.reports.document import SPACE, Block, Heading, Paragraph, Table, Text, plain, signed, typeset
from shared.reports.paper import Column, Paper, PaperTable
from shared.reports.studies import is_study, number

Tasks = Mapping[str, list[RunResults]]
PAPERS_OWN = "paper_scale"  # the scale with the paper's data and models
OWN: Evidence = "paper's data"

ELSEWHERE = (
    "Ours come from {data} and smaller models: compare the order of the rows, not the numbers. Differences stand "
    "beside them only at the scale that has the paper's models, too."
)
SAME_DATA = "Ours come from the paper's data; Δ is ours minus the paper's."


def beside_the_paper(
    paper: Paper, tasks: Tasks, scale: str, evidence: Mapping[str, Evidence] | None = None
) -> list[Block]:
    """The paper's tables with our number where a variant corresponds; at paper_scale with its distance.

    Args:
        paper: its facts.
        tasks: task to the runs of its variants.
        scale: of these runs.
        evidence: variant to what its data are.
    """
    same_data, kinds = scale == PAPERS_OWN, {*(evidence or {}).values()} - {"measured"}
    data = "other data" if OWN not in kinds else "the paper's data" if kinds == {OWN} else "the paper's and other data"
    blocks: list[Block] = [
        Heading("The paper's tables beside ours"),
        Paragraph(SAME_DATA if same_data else ELSEWHERE.format(data=data)),
    ]
    for table in paper.tables:
        blocks.append(Heading(f"{table.where}: {table.title}", level=3))
        blocks.append(_paper_table(table, tasks, same_data))
        if table.note:
            blocks.append(Paragraph(table.note))
    return blocks


def _paper_table(table: PaperTable, tasks: Tasks, same_data: bool) -> Table:
    columns, align = ["Model"], "l"
    cells: list[list[Text]] = [[table.label(row)] for row in range(len(table.rows))]
    for column in table.columns:
        printed = [row[column.key] for row in table.rows]
        numeric = all(value is None or isinstance(value, int | float) for value in printed)
        decimals = max((_decimals(v) for v in printed if isinstance(v, float)), default=0)
        in_paper = any(value is not None for value in printed)
        if in_paper:
            columns.append(column.title)
            align += "r" if numeric else "l"
            for cell, value in zip(cells, printed, strict=True):
                cell.append(plain(value, decimals) if isinstance(value, float) else written(value))
        for task, runs in tasks.items():
            ours = [_counterpart(table, row, column, runs) for row in range(len(table.rows))]
            if found := [run for run in ours if run is not None]:
                whose = f"{'ours ' * in_paper}on {task}" if any(map(_is_network, found)) else "computed here"
                columns.append(f"{column.title}, {whose}{' (Δ)' * (numeric and same_data)}")
                align += "r"
                for row, (cell, run) in enumerate(zip(cells, ours, strict=True)):
                    cell.append("–" if run is None else _ours(table, row, column, run, same_data))
    return Table(columns, cells, align)


def _decimals(value: float) -> int:
    """Digits after the decimal point in the shortest form of a number, or of its mantissa in scientific notation."""
    return len(str(value).partition("e")[0].partition(".")[2])


def written(value: object) -> str:
    """A cell of one of the paper's tables."""
    if value is None:
        return "–"
    return typeset(str(value)) if isinstance(value, float) else str(value)


def _is_network(run: RunResults) -> bool:
    return is_trained(run) and not is_study(run)


def _counterpart(table: PaperTable, row: int, column: Column, runs: list[RunResults]) -> RunResults | None:
    """The first run that corresponds to a row and has a number for the column."""
    wanted, metric = table.variants(row), table.metric(row, column)
    return next((run for run in runs if run.variant in wanted and metric in run.mean), None)


def _ours(table: PaperTable, row: int, column: Column, run: RunResults, same_data: bool) -> str:
    """The number of a run, on the same data with its distance from the paper's."""
    metric, theirs = table.metric(row, column) or "", table.rows[row][column.key]
    ours = run.mean[metric]
    shown = plain(ours, 2) if known(metric) else number(ours)
    return f"{shown}{SPACE}({signed(ours - theirs, 2)})" if same_data and isinstance(theirs, int | float) else shown
