"""What reports of papers on separate sequences show: scores on further test splits, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.claims.results import RunResults
from shared.reports.curves import ERROR_LABEL, LOSS, Curve, LearningCurves
from shared.reports.document import Block
from shared.reports.exhibits import KindReport

FURTHER = ".token_accuracy"
"""Suffix of the metrics that reveal further test splits; the name of the split stands before it."""
_ERROR = "Share of the scored symbols of the validation split that are not the most probable ones, against updates"
CURVES = (LOSS, Curve("error", _ERROR, ERROR_LABEL))
"""What validation finds."""


def further_splits(runs: Sequence[RunResults]) -> list[Block]:
    """Tables of scores of every test split but the first, of the variants of one task."""
    from shared.reports.runs import score_tables

    splits = sorted({name.removesuffix(FURTHER) for run in runs for name in run.mean if name.endswith(FURTHER)})
    return [block for split in splits for block in score_tables(runs, split)]


def curves(panels: Mapping[str, Sequence[str]], **placed: str) -> LearningCurves:
    """Learning curves of trainings that may diverge; ``placed`` as of :class:`LearningCurves`."""
    return LearningCurves(panels, CURVES, diverging=True, **placed)


REPORT = KindReport(tables=further_splits, figures=(curves({}),))
