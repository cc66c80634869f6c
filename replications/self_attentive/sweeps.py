"""How measures depend on one hyper-parameter, as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shared.claims.results import RunResults
from shared.metrics.registry import measure, split_of
from shared.reports.document import Figure, extremes, slug
from shared.reports.exhibits import Exhibit, Results
from shared.reports.figures import COLOURS, INK, MARKERS, panels_drawn, place_ticks
from shared.reports.naming import token_of

SHOWN = "Mean over seeds; bars: 95 % intervals over test examples and seeds; small black dots: each seed."


@dataclass(frozen=True)
class Sweep(Exhibit):
    """A figure ``sweep_<title>.png`` of variants of one task that differ in one hyper-parameter, a panel for each
    metric that two of them have.

    Attributes:
        title: what the caption begins with.
        x: what the hyper-parameter is called.
        points: its value to the variant that has it.
        metrics: keys of metrics.json.
        log: whether its values lie on a logarithmic scale; 0 may be among them.
    """

    title: str
    x: str
    points: Mapping[float, str]
    metrics: Sequence[str]
    log: bool = False

    def variants(self) -> Sequence[str]:
        """Those that differ."""
        return list(self.points.values())

    def measures(self) -> Sequence[str]:
        """The metrics."""
        return self.metrics

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if any metric has two points."""
        found = {x: results[name] for x, name in sorted(self.points.items()) if name in results}
        runs = {name: {x: run for x, run in found.items() if name in run.mean} for name in self.metrics}
        shown = {name: of_metric for name, of_metric in runs.items() if len(of_metric) > 1}
        if not shown:
            return ()
        path = folder / f"sweep_{slug(self.title)}.png"
        with panels_drawn(path, len(shown), height=2.7) as (_, grid):
            for axes, (name, of_metric) in zip(grid, shown.items(), strict=True):
                _plot(axes, of_metric, name)
                place_ticks(axes, list(of_metric), log=self.log)
                axes.set(xlabel=self.x, ylabel=_label(name, list(of_metric.values())))
        of = {f"{self.x} {x:g}": run.mean[name] for x, run in of_metric.items()}
        said = extremes(_label(name, [*of_metric.values()]), of)
        return [Figure(path, f"{said}{self.title.rstrip('.')}. {SHOWN}")]


def _label(metric: str, runs: Sequence[RunResults]) -> str:
    """What a metric is, in words: with its unit, what the runs call a token, and the split if it is a further one."""
    split, name = split_of(metric)
    of = measure(name)
    label = of.title.format(token=token_of(runs)) + f" ({of.unit})" * (of.unit == "%")
    return f"{label}, split {split}" if split else label


def _plot(axes: Any, runs: Mapping[float, RunResults], metric: str) -> None:
    """The mean over seeds, its 95 % interval as a bar, each seed as a dot."""
    from shared.claims.effects import scalars  # these bring scipy, which a check of names does without
    from shared.claims.estimates import estimate

    means = []
    for x, run in runs.items():
        found = estimate(run, metric)
        assert found is not None, "the runs of a sweep have its metric"
        means.append(found.value)
        seeds = scalars(run, metric)
        # A t interval may exceed the range of the metric, so it is clipped; it goes below 0 only if a seed does.
        ends = np.clip(found.interval(), min(0.0, seeds.min()), measure(metric).most)
        axes.vlines(x, *ends, color=COLOURS[0], alpha=0.22, linewidth=7)
        axes.plot([x] * len(seeds), seeds, ".", color=INK, markersize=5, markeredgewidth=0, zorder=3)
    axes.plot(list(runs), means, color=COLOURS[0], marker=MARKERS[0], markersize=6)
