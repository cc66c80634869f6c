"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from shared.reports.curves import LearningCurves
from shared.reports.document import Figure, extremes
from shared.reports.exhibits import OfVariants, Results
from shared.reports.figures import drawing
from shared.reports.naming import name_and_id, name_of

CAPTION = (
    "Span of every head, its ramp included: means over seeds, sorted within each layer of a seed, as heads have no "
    "order; bars go from the least to the largest."
)


class Spans(OfVariants):
    """A figure ``spans.png``: how far back the heads of each layer look."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if one of the variants was run."""
        runs = [run for variant in self.shown if (run := results.get(variant)) is not None and run.metrics]
        if not runs:
            return ()
        spans: dict[str, float] = {}
        with drawing(folder / "spans.png", height=1.0 + 1.6 * len(runs)) as canvas:
            for axes, run in zip(canvas.subplots(len(runs), squeeze=False)[:, 0], runs, strict=True):
                layers = sorted({name.partition("-")[0] for name in run.mean if name.startswith("span@")})
                spans[name_of(run.variant)] = fmean(z for name, z in run.mean.items() if name.startswith("span@"))
                begin, middles = 0, []
                for layer in layers:
                    of_seeds = np.array([
                        sorted(value for name, value in of.items() if name.startswith(f"{layer}-"))
                        for of in run.metrics.values()
                    ])  # fmt: skip
                    mean, places = of_seeds.mean(0), begin + np.arange(of_seeds.shape[1])
                    axes.bar(places, mean, yerr=[mean - of_seeds.min(0), of_seeds.max(0) - mean])
                    middles.append(places.mean())
                    begin += of_seeds.shape[1] + 1
                names = [layer.replace("span@", "layer ") for layer in layers]
                axes.set(title=name_and_id(run.variant), ylabel="Span, symbols", xticks=middles, xticklabels=names)
        return [Figure(folder / "spans.png", f"{extremes('Span in symbols, mean over heads', spans)}{CAPTION}")]


FIGURES = [
    Spans(["adaptive", "adaptive-near"], claim="A19-C3", counterpart="Figure 4"),
    LearningCurves({"Learned and fixed spans": ["adaptive", "fixed", "fixed-short"]}),
]
