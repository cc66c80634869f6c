"""Metrics over a hyper-parameter as curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from shared.claims.results import RunResults
from shared.claims.sampling import scalars
from shared.metrics.measures import measure
from shared.reports.breakdown import estimate
from shared.reports.figures import INK, MARKERS, PALETTE, drawing, place_ticks
from shared.reports.sweeps import Sweep

SHOWN = "Mean over seeds; bars: 95 % intervals over test examples and seeds; small black dots: each seed."


def draw_sweep(sweep: Sweep, results: Mapping[str, RunResults], path: Path) -> bool:
    """Draw a panel per metric: the mean over seeds, its 95 % interval as a bar, each seed as a dot.

    A logarithmic axis is linear from 0 to the smallest positive value, so that 0 has its place on it.

    Args:
        sweep: what is drawn; a metric that fewer than two of its variants have is left out.
        results: all variants.
        path: of the PNG.

    Returns:
        whether there was anything to draw.
    """
    panels = {m: runs for m in sweep.metrics if len(runs := sweep.runs(results, m)) > 1}
    if not panels:
        return False
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with drawing(path, height=2.7 * rows) as canvas:
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axes, (metric, runs) in zip(grid, panels.items(), strict=False):
            _curve(axes, runs, metric)
            place_ticks(axes, list(runs), log=sweep.log)
            axes.set(xlabel=sweep.x, ylabel=_label(metric))
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
    return True


def _label(metric: str) -> str:
    of = measure(metric)
    return f"{of.title} ({of.unit})" if of.unit == "%" else of.title


def _curve(axes: Axes, runs: Mapping[float, RunResults], metric: str) -> None:
    means = []
    for x, run in runs.items():
        found = estimate(run, metric)
        assert found is not None, "the runs of a sweep have its metric"
        means.append(found.value)
        seeds = scalars(run, metric)
        # Student's t knows nothing of the ends of the scale; below 0 there is something only where a seed is.
        ends = np.clip(found.interval(), min(0.0, seeds.min()), measure(metric).most)
        axes.vlines(x, *ends, color=PALETTE[0], alpha=0.22, linewidth=7)
        axes.plot([x] * len(seeds), seeds, ".", color=INK, markersize=5, markeredgewidth=0, zorder=3)
    axes.plot(list(runs), means, color=PALETTE[0], marker=MARKERS[0], markersize=6)
