"""Pictures of attention: the darker, the more weight, in the same colours in all papers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

GROUND, MIDDLE, FULL = "#eef2f7", "#6baed6", "#08306b"  # weights of 0, 1/2 and 1
UNSEEN = "#e6d5ae"  # a weight that is exactly zero
WEIGHTS = LinearSegmentedColormap.from_list("weights", (GROUND, MIDDLE, FULL)).with_extremes(bad=UNSEEN)


def bar_of_weights(canvas: Canvas, panels: Iterable[Axes]) -> None:
    """Say below the heatmaps which colour is how much."""
    bar = canvas.colorbar(
        ScalarMappable(cmap=WEIGHTS), ax=[*panels], location="bottom", fraction=0.03, aspect=60, pad=0.02
    )
    bar.set_ticks([0.0, 0.5, 1.0], labels=["0", "0.5", "weight 1"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8.5)


def draw_weights(
    axes: Axes, weights: NDArray[Any], *, columns: Sequence[str], rows: Sequence[str], size: float, square: bool = True
) -> None:
    """The darker, the more; beige is masked: weights (rows, columns), with words in ``size`` points where given.

    Either side's words may be left out by giving none. Cells that are not ``square`` fill the panel.
    """
    axes.grid(visible=False)
    axes.imshow(
        weights, cmap=WEIGHTS, vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal" if square else "auto"
    )
    axes.xaxis.tick_top()
    # Words of the data are no formulas, whatever dollar signs they have.
    axes.set_xticks(range(len(columns)), [str(word) for word in columns], rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(len(rows)), [str(word) for word in rows], fontsize=size, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
