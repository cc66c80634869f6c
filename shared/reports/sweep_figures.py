"""Metrics over a hyper-parameter as curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from shared.claims.effects import scalars
from shared.claims.results import RunResults
from shared.metrics.registry import measure
from shared.reports.estimates import estimate
from shared.reports.figures import COLOURS, INK, MARKERS, drawing, place_ticks

Panels = Mapping[str, Mapping[float, RunResults]]
"""Metric to the value of the hyper-parameter to the run with it."""


def draw_panels(panels: Panels, path: Path, *, x: str, log: bool) -> None:
    """Draw a panel per metric: the mean over seeds, its 95 % interval as a bar, each seed as a dot.

    A logarithmic axis is linear from 0 to the smallest positive value, so that 0 has its place on it.

    Args:
        panels: at least one.
        path: of the PNG.
        x: what the hyper-parameter is called.
        log: whether its values lie on a logarithmic scale.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with drawing(path, height=2.7 * rows) as canvas:
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axes, (metric, runs) in zip(grid, panels.items(), strict=False):
            _curve(axes, runs, metric)
            place_ticks(axes, list(runs), log=log)
            axes.set(xlabel=x, ylabel=_label(metric))
        for axes in grid[len(panels) :]:
            axes.set_visible(False)


def _label(metric: str) -> str:
    of = measure(metric)
    return f"{of.title} ({of.unit})" if of.unit == "%" else of.title


def _curve(axes: Axes, runs: Mapping[float, RunResults], metric: str) -> None:
    means = []
    for x, run in runs.items():
        estimated = estimate(run, metric)
        assert estimated is not None, "the runs of a sweep have its metric"
        means.append(estimated.value)
        seeds = scalars(run, metric)
        # A t interval may exceed the range of the metric, so it is clipped; it goes below 0 only if a seed does.
        ends = np.clip(estimated.interval(), min(0.0, seeds.min()), measure(metric).most)
        axes.vlines(x, *ends, color=COLOURS[0], alpha=0.22, linewidth=7)
        axes.plot([x] * len(seeds), seeds, ".", color=INK, markersize=5, markeredgewidth=0, zorder=3)
    axes.plot(list(runs), means, color=COLOURS[0], marker=MARKERS[0], markersize=6)
