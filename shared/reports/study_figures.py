"""Numbers of studies against a size as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from shared.reports.figures import drawing, legend_above, place_ticks, plain_powers, plot_line
from shared.reports.study_lines import Curve, StudyPanel
from shared.reports.styles import styles_of

Panel = tuple[StudyPanel, Mapping[str, Curve]]
COLUMNS = 2  # panels in a line
NAMED = 6  # ticks of a panel whose sizes have room beside each other; of one alone twice as many


def draw_panels(panels: Sequence[Panel], labels: Sequence[str], path: Path) -> None:
    """Draw lines with their bands, panels side by side.

    Args:
        panels: at least one, with its lines by label.
        labels: all there may be.
        path: of the PNG.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with drawing(path, height=0.4 + (3.3 if columns == 1 else 2.8 * rows)) as canvas:
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axes, (line, curves) in zip(grid, panels, strict=False):
            for index, label in zip(styles_of(labels), labels, strict=True):
                if label in curves:
                    plot_line(axes, index, len(curves), curves[label], label=label, marked=True)
            _scales(axes, line, curves, NAMED * COLUMNS // columns)
            axes.set(xlabel=line.x, ylabel=line.y)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        legend_above(canvas, *grid[: len(panels)])


def _scales(axes: Axes, line: StudyPanel, curves: Mapping[str, Curve], named: int) -> None:
    if line.log_y and any(value > 0.0 for _, values, *_ in curves.values() for value in values):
        axes.set_yscale("log")
        plain_powers(axes.yaxis)
    places = sorted({size for sizes, *_ in curves.values() for size in sizes})
    place_ticks(axes, places, log=line.log_x, named=named)
