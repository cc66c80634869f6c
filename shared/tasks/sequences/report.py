"""The figures that the report of every paper on separate sequences shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Figure
from shared.reports.learning_curves import learning_curves
from shared.reports.study_figures import study_figures
from shared.reports.study_lines import StudyLines
from shared.tasks.sequences.pictures import picture_figures

CURVES = {
    "loss": "Loss on the validation split against updates",
    "error": "Share of the scored symbols of the validation split that are not the most probable ones, against updates",
}


def sequence_figures(
    results: Mapping[str, RunResults],
    folder: Path,
    *,
    panels: Mapping[str, Sequence[str]],
    pictures: Sequence[str],
    lines: Sequence[StudyLines],
) -> list[Figure]:
    """What studies measured, pictures that models drew, and learning curves.

    Args:
        results: all variants.
        folder: where the PNGs go.
        panels: title to the variants that share a figure of curves, see :func:`shared.reports.panels.panels`.
        pictures: variants whose pictures are shown.
        lines: what is drawn of studies; those of the same title share a figure.
    """
    return [
        *study_figures(results, folder, lines),
        *picture_figures(results, folder, pictures),
        *learning_curves(results, folder, panels, CURVES, diverging=True),
    ]
