"""How much faster text is scored with the states of earlier segments than in sliding windows (table 9)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from shared.claims.results import RunResults
from shared.reports.curves import Points
from shared.reports.figures import COLOURS, DASHES, MARKERS, drawing, place_ticks, plain_powers

CAPTION = (
    "What scoring one symbol costs, by how many symbols before it are seen: with the states of earlier segments kept, "
    "and in windows that slide by one symbol, each read anew. Left: time; right: how many times more the windows "
    "take, in time and in symbols that go through the network."
)
WINDOWS, STATES = "sliding windows", "states kept"


def by_length(run: RunResults, quantity: str) -> Points:
    """Attention length to the values of all seeds, of the metrics ``<quantity>@<length>``."""
    points: Points = {}
    for metrics in run.metrics.values():
        for name, value in metrics.items():
            before, at, length = name.partition("@")
            if at and before == quantity:
                points.setdefault(float(length), []).append(value)
    return points


def draw_speed(run: RunResults, path: Path) -> bool:
    """Draw time per symbol, and the ratios of times and of symbols, against the attention length.

    Returns:
        whether it was measured; if not, nothing is drawn.
    """
    slow, fast = by_length(run, "microseconds_sliding"), by_length(run, "microseconds_reuse")
    if not slow or not fast:
        return False
    with drawing(path, height=3.2) as canvas:
        left, right = canvas.subplots(1, 2)
        _line(left, slow, 0, WINDOWS)
        _line(left, fast, 1, STATES, above=False)
        left.set(ylabel="Time per scored symbol (µs)")
        _line(right, by_length(run, "token_ratio"), 2, "symbols")
        _line(right, by_length(run, "speedup"), 0, "time", above=False)
        right.set(ylabel=f"{WINDOWS.capitalize()} / {STATES}")
        for axes in (left, right):
            axes.set_yscale("log")
            axes.set(xlabel="Attention length (symbols)")
            axes.margins(y=0.15)
            plain_powers(axes.yaxis)
    return True


def _line(axes: Axes, points: Points, index: int, label: str, *, above: bool = True) -> None:
    """The mean over the seeds, their range shaded; named above its end, or below, where a rising line leaves room."""
    places = sorted(points)
    low, mean, high = ([float(of(points[place])) for place in places] for of in (min, np.mean, max))
    colour = COLOURS[index]
    axes.fill_between(places, low, high, color=colour, alpha=0.16, linewidth=0)
    axes.plot(places, mean, color=colour, linestyle=DASHES[index], marker=MARKERS[index])
    axes.set_xscale("log")
    place_ticks(axes, places, log=False)
    if above:
        end, shift, ha, va = -1, (0, 7), "right", "bottom"
    else:
        end, shift, ha, va = -min(2, len(places)), (4, -7), "left", "top"
    place = (places[end], mean[end])
    axes.annotate(label, place, shift, textcoords="offset points", color=colour, ha=ha, va=va)
