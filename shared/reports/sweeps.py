"""How metrics depend on one hyper-parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.document import Figure, slug
from shared.reports.exhibits import Exhibit, Results

SHOWN = "Mean over seeds; bars: 95 % intervals over test examples and seeds; small black dots: each seed."


@dataclass(frozen=True)
class Sweep(Exhibit):
    """A figure ``sweep_<title>.png`` of variants of one task that differ in one hyper-parameter.

    Attributes:
        title: what the caption begins with.
        x: what the hyper-parameter is called.
        points: its value to the variant that has it.
        metrics: keys of metrics.json, a panel each; one that fewer than two of the variants have is left out.
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

    def runs(self, results: Results, metric: str) -> dict[float, RunResults]:
        """Value to the run with it, ascending; without those that were not run or lack the metric."""
        run = {x: results[name] for x, name in sorted(self.points.items()) if name in results}
        return {x: each for x, each in run.items() if metric in each.mean}

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if any metric has two points."""
        from shared.reports.sweep_figures import draw_panels

        shown = {metric: runs for metric in self.metrics if len(runs := self.runs(results, metric)) > 1}
        if not shown:
            return ()
        path = folder / f"sweep_{slug(self.title)}.png"
        draw_panels(shown, path, x=self.x, log=self.log)
        return [Figure(path, f"{self.title.rstrip('.')}. {SHOWN}")]
