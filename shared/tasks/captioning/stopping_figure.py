"""BLEU against likelihood over training as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from shared.claims.results import RunResults
from shared.reports.figures import COLOURS, INK, drawing
from shared.reports.naming import name_of
from shared.tasks.captioning.stopping import Course, courses

COLUMNS = 3  # panels in a line
SHOWN = (
    "Each line is the training of one seed, without its first third; dots: its last third; ring: where BLEU is "
    "highest; cross: where likelihood is."
)


def draw_stopping(runs: Sequence[RunResults], path: Path) -> bool:
    """Draw BLEU against likelihood over training, a panel for each variant.

    Args:
        runs: those that recorded no BLEU in training are left out.
        path: of the PNG.

    Returns:
        whether there was anything to draw.
    """
    panels = {run.variant: found for run in runs if (found := courses(run))}
    if not panels:
        return False
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with drawing(path, height=2.5 * lines + 0.5) as canvas:
        grid = canvas.subplots(lines, columns, squeeze=False).ravel()
        for axes, (variant, found) in zip(grid, panels.items(), strict=False):
            for index, course in enumerate(found):
                _trace(axes, course, COLOURS[index % len(COLOURS)])
            axes.set_title(name_of(variant))
            axes.locator_params(nbins=5)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        canvas.supxlabel(f"Log-likelihood (nats per {runs[0].token})", fontsize="medium")
        canvas.supylabel("BLEU-4", fontsize="medium")
        canvas.legend(handles=_marks(), loc="outside upper left", ncols=3)
    return True


def _trace(axes: Axes, course: Course, colour: str) -> None:
    late, last = course.after(1 / 3), course.after(2 / 3)
    axes.plot(late.likelihood, late.bleu, color=colour, alpha=0.55, linewidth=0.9)
    axes.plot(last.likelihood, last.bleu, ".", color=colour, markersize=5)
    for mark, place in (("o", course.bleu.argmax()), ("x", course.likelihood.argmax())):
        axes.plot(course.likelihood[place], course.bleu[place], **_mark(mark))


def _marks() -> list[Line2D]:
    dots = Line2D([], [], color=COLOURS[0], marker=".", linewidth=0.9, label="last third of training")
    ends = {"o": "highest BLEU", "x": "highest likelihood"}
    return [dots, *(Line2D([], [], label=label, **_mark(mark)) for mark, label in ends.items())]


def _mark(mark: str) -> dict[str, Any]:
    return {
        "marker": mark, "color": INK, "linestyle": "none", "markerfacecolor": "none", "markersize": 8,
        "markeredgewidth": 1.3,
    }  # fmt: skip
