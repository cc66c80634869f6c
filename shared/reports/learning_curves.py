"""Learning curves of variants that share a figure, a figure for each quantity that validation finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.curves import read_apart
from shared.reports.document import Figure
from shared.reports.figures import SPREAD, training_curves
from shared.reports.panels import panels

EARLY = " A variant with crosses has a line for each seed: at a cross its training ended before its time."


def learning_curves(
    results: Mapping[str, RunResults],
    folder: Path,
    chosen: Mapping[str, Sequence[str]],
    metrics: Mapping[str, str],
    *,
    diverging: bool = False,
) -> list[Figure]:
    """Draw ``training_<metric>_<panel>.png`` into ``folder``, for those panels that have such a curve.

    Args:
        results: all variants.
        folder: where the PNGs go.
        chosen: title to the variants that share a figure, see :func:`shared.reports.panels.panels`.
        metrics: of the validation split, to what the caption says of them.
        diverging: whether training may end before its time, see :func:`shared.reports.figures.training_curves`.
    """
    figures: list[Figure] = []
    for panel in panels(results, chosen):
        for metric, caption in metrics.items():
            path = folder / f"training_{metric}_{panel.name}.png"
            if training_curves(panel.runs, path, metric=metric, diverging=diverging):
                early = diverging and any(read_apart(run, metric=metric, split="valid") for run in panel.runs)
                figures.append(Figure(path, f"{panel.title}. {caption}: {SPREAD}{EARLY if early else ''}"))
    return figures
