"""The figures of papers on separate sequences, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.reports.curves import ERROR_LABEL, LOSS, Curve, LearningCurves
from shared.reports.document import Figure
from shared.reports.exhibits import OfVariants, Results

_ERROR = "Share of the scored symbols of the validation split that are not the most probable ones, against updates"
CURVES = (LOSS, Curve("error", _ERROR, ERROR_LABEL))
"""What validation finds."""


def curves(panels: Mapping[str, Sequence[str]], only: str = "") -> LearningCurves:
    """Learning curves of trainings that may diverge."""
    return LearningCurves(panels, CURVES, diverging=True, only=only)


class Pictures(OfVariants):
    """Figures ``samples_<task>.png`` and ``completions_<variant>.png`` of pictures that first seeds drew."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figures of the variants that drew anything."""
        from shared.tasks.sequences.pictures import picture_figures

        return picture_figures(results, folder, self.shown)
