"""Numbers of studies against a size as figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Figure
from shared.reports.figures import drawing, legend_above, place_ticks, plain_powers, plot_line
from shared.reports.panels import LINES
from shared.reports.study_lines import Curve, StudyLines

Panel = tuple[StudyLines, Mapping[str, Curve]]
COLUMNS = 2  # panels in a line
NAMED = 6  # ticks of a panel whose sizes have room beside each other; of one alone twice as many


def study_figures(results: Mapping[str, RunResults], folder: Path, lines: Sequence[StudyLines]) -> list[Figure]:
    """Draw ``study_<number>.png`` into ``folder`` for every title, a panel for each of its lines that was measured.

    Raises:
        ReplicationError: a figure has too many labels; or see :meth:`shared.reports.study_lines.StudyLines.curves`.
    """
    titles: dict[str, list[StudyLines]] = defaultdict(list)
    for line in lines:
        titles[line.title].append(line)
    figures = []
    for number, (title, group) in enumerate(titles.items(), start=1):
        labels = list(dict.fromkeys(label for line in group for label in line.subjects.values()))
        if len(labels) > LINES:
            raise ReplicationError(f"'{title}' has more than {LINES} lines; choose fewer in replication.py.")
        panels = [(line, curves) for line in group if (curves := line.curves(results))]
        if panels:
            path = folder / f"study_{number}.png"
            draw_panels(panels, labels, path)
            figures.append(Figure(path, f"{title.rstrip('.')}."))
    return figures


def draw_panels(panels: Sequence[Panel], labels: Sequence[str], path: Path) -> None:
    """Draw lines with their bands, panels side by side.

    Args:
        panels: at least one, with its lines by label.
        labels: all there may be, in the order of their colours.
        path: of the PNG.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with drawing(path, height=0.4 + (3.3 if columns == 1 else 2.8 * rows)) as canvas:
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axes, (line, curves) in zip(grid, panels, strict=False):
            for index, label in enumerate(labels):
                if label in curves:
                    plot_line(axes, index, len(curves), curves[label], label=label, marked=True)
            _scales(axes, line, curves, NAMED * COLUMNS // columns)
            axes.set(xlabel=line.x, ylabel=line.y)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        legend_above(canvas, *grid[: len(panels)])


def _scales(axes: Axes, line: StudyLines, curves: Mapping[str, Curve], named: int) -> None:
    if line.log_y and any(value > 0.0 for _, values, *_ in curves.values() for value in values):
        axes.set_yscale("log")
        plain_powers(axes.yaxis)
    places = sorted({size for sizes, *_ in curves.values() for size in sizes})
    place_ticks(axes, places, log=line.log_x, named=named)
