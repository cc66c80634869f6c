"""What reports of papers on separate sequences show: scores on further test splits."""

from __future__ import annotations

from collections.abc import Sequence

from shared.claims.results import RunResults
from shared.reports.document import Block
from shared.reports.exhibits import KindReport
from shared.reports.runs import score_tables
from shared.tasks.sequences.figures import curves

FURTHER = ".token_accuracy"
"""Suffix of the metrics that reveal further test splits; the name of the split stands before it."""


def further_splits(runs: Sequence[RunResults]) -> list[Block]:
    """Tables of scores of every test split but the first, of the variants of one task."""
    splits = sorted({name.removesuffix(FURTHER) for run in runs for name in run.mean if name.endswith(FURTHER)})
    return [block for split in splits for block in score_tables(runs, split)]


REPORT = KindReport(tables=further_splits, figures=(curves({}),))
