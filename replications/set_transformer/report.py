"""What the report of this paper shows: errors by the size of a set, and mixtures that were read off sets of points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shared.reports.curves import LearningCurves, StudyLines, StudyPanel, draw_curves, ends
from shared.reports.document import Figure, extremes
from shared.reports.exhibits import OfVariant, OfVariants, Results, examples_with
from shared.reports.figures import COLOURS, drawing
from shared.tasks.examples import kept_of
from shared.tasks.sets.report import CURVES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BY_SIZE = (
    "{label} against the number of elements of the test set. Lines: means over seeds; bands: from the lowest to the "
    "highest seed."
)
MIXTURES = (
    "Ellipses: two standard deviations of each Gaussian; the more weight it has, the darker. Dotted: those of the "
    "mixture that the points were drawn from."
)
DEVIATIONS, FAINTEST = 2.0, 0.15
HALF = 5.2  # of the square that is drawn


@dataclass(frozen=True)
class BySize(OfVariants):
    """A figure ``by_size_<measure>.png`` of the mean of a number of test sets, by how many elements they have.

    Attributes:
        shown: variants of one task.
        measure: which that mean is, over all sets.
        entry: that number, in the records of the sets.
        label: of the axis.
    """

    measure: str
    entry: str
    label: str

    def measures(self) -> Sequence[str]:
        """The one."""
        return (self.measure,)

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if a variant was run."""
        runs = [results[name] for name in self.shown if name in results and results[name].seeds]
        curves = []
        for run in runs:
            points: dict[float, list[float]] = defaultdict(list)
            for examples in run.examples.values():
                by_size: dict[float, list[float]] = defaultdict(list)
                for each in examples_with(examples, self.entry):
                    by_size[each["elements"]].append(each[self.entry])
                for size, values in by_size.items():
                    points[size].append(float(np.mean(values)))
            curves.append(dict(points))
        path = folder / f"by_size_{self.measure}.png"
        if not draw_curves(runs, curves, path, x="Elements of the set", y=self.label, marked=True):
            return ()
        said = ends(f"{self.label} of the largest sets", runs, curves)
        return [Figure(path, f"{said}{BY_SIZE.format(label=self.label)}")]


class Clusters(OfVariant):
    """A figure ``clusters_<variant>.png`` of test sets of points, with ellipses for the Gaussians of their mixtures."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept some sets."""
        kept = kept_of(results, self.variant)
        if not kept:
            return ()
        path = folder / f"clusters_{self.variant}.png"
        with drawing(path, height=2.1) as canvas:
            for axes, each in zip(canvas.subplots(1, len(kept), squeeze=False)[0], kept, strict=True):
                axes.scatter(*each["points"].T, s=4, color="#59636e", linewidths=0)
                ellipses(axes, each, "", linestyle="-")
                ellipses(axes, each, "true_", linestyle=":")
                axes.set(xlim=(-HALF, HALF), ylim=(-HALF, HALF), aspect="equal", xticks=(), yticks=())
        said = extremes("Nats a point lost against the true mixture", {"": results[self.variant].mean["nats_lost"]})
        return [Figure(path, f"{said}{self.caption.rstrip('.')}. {MIXTURES}")]


def ellipses(axes: Axes, kept: Mapping[str, NDArray[Any]], prefix: str, *, linestyle: str) -> None:
    """Draw an ellipse for each Gaussian of a mixture, the model's or the true one."""
    from matplotlib.patches import Ellipse

    parts = (kept[prefix + name].tolist() for name in ("weights", "means", "scales"))
    for weight, mean, scale in zip(*parts, strict=True):
        width, height = (2 * DEVIATIONS * each for each in scale)
        alpha, colour = (max(FAINTEST, weight), COLOURS[0]) if not prefix else (1.0, "black")
        axes.add_patch(Ellipse(
            mean, width, height, alpha=alpha, facecolor="none" if prefix else colour, edgecolor=colour,
            linestyle=linestyle,
        ))  # fmt: skip


FIGURES = [
    StudyLines("Multiply-adds of a block of the encoder", [
        StudyPanel("order", "operations", "Elements of the set", "Multiply-adds", {
            "sab": "SAB: every element looks at all", "isab": "ISAB: through inducing points",
        }),
    ], claim="L19-C2"),
    BySize(["maxima-sab", "maxima-max", "maxima-mean"], "absolute_error", "error", "Absolute error", claim="L19-C3"),
    BySize(
        ["digits-sab", "digits-sab-mean", "digits-pma", "digits-max", "digits-mean"],
        "counted_right", "counted", "Sets counted rightly (share)", claim="L19-C5",
    ),
    Clusters(
        "clusters-sab", "Test sets with the mixtures that SAB and PMA read off them.",
        claim="L19-C7", counterpart="Figure 4",
    ),
    Clusters(
        "clusters-mean", "The same sets, with the mixtures that pooling by the mean reads off them.",
        claim="L19-C7", counterpart="Figure 4",
    ),
    LearningCurves({
        "Maximum": ["maxima-sab", "maxima-max", "maxima-mean"],
        "Different digits": ["digits-sab", "digits-sab-mean", "digits-pma", "digits-max", "digits-mean"],
        "Mixtures": ["clusters-sab", "clusters-isab", "clusters-max", "clusters-mean"],
    }, CURVES),
]  # fmt: skip
