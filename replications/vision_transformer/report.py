"""What the report of this paper shows: accuracy by the number of pictures, and where the class token looks in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.reports.curves import LearningCurves, ends, plot_curves
from shared.reports.document import Figure
from shared.reports.exhibits import Exhibit, OfVariant, Results
from shared.reports.figures import drawing, legend_above, place_ticks
from shared.tasks.classification.figures import CURVES
from shared.tasks.examples import kept_of

RED = np.array([242, 92, 72]) / 255
DARKEST = 0.85  # share of its brightness that the ground loses at the last grey level
GROWTH = (
    "Accuracy on the test pictures against the number of training pictures, on a logarithmic scale. Lines: means over "
    "seeds; bands: from the lowest to the highest seed."
)
ROLLED_OUT = (
    "The redder a patch, the more of it is in what the class is read from, by attention rollout over all layers; the "
    "reddest patch of each picture has the most. Above: the digit, and what was predicted if that was another one."
)


@dataclass(frozen=True)
class Growth(Exhibit):
    """A figure ``growth.png`` of accuracies against the number of training pictures, a line for each kind of network.

    Attributes:
        lines: of each kind the variant whose name the line has, to its variants by their number of training pictures.
    """

    lines: Mapping[str, Mapping[int, str]]

    def variants(self) -> Sequence[str]:
        """Those of all lines."""
        return [variant for line in self.lines.values() for variant in line.values()]

    def measures(self) -> Sequence[str]:
        """The accuracy."""
        return ("accuracy",)

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if every line has two points."""
        lines = [{n: results[name] for n, name in line.items() if name in results} for line in self.lines.values()]
        lines = [{n: of for n, of in line.items() if of.seeds} for line in lines]
        if min(map(len, lines)) < 2:
            return ()
        points = [{float(n): [m["accuracy"] for m in of.metrics.values()] for n, of in line.items()} for line in lines]
        path = folder / "growth.png"
        with drawing(path, height=3.2) as canvas:
            axes = canvas.subplots()
            runs = [replace([*of.values()][-1], variant=name) for name, of in zip(self.lines, lines, strict=True)]
            plot_curves(axes, runs, points, marked=True)
            place_ticks(axes, sorted({x for line in points for x in line}), log=True)
            axes.set(xlabel="Training pictures", ylabel="Accuracy, %")
            legend_above(canvas, axes)
        return [Figure(path, f"{ends('Accuracy with the most pictures, %', runs, points)}{GROWTH}")]


class RollOuts(OfVariant):
    """A figure ``roll_out_<variant>.png`` of test pictures on a ground as red as the attention that rolls out to it."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        kept = kept_of(results, self.variant)
        if not kept:
            return ()
        path = folder / f"roll_out_{self.variant}.png"
        levels = sorted({word for each in kept for word in each["words"].tolist()})
        with drawing(path, height=1.2, shaded=True) as canvas:
            for axes, each in zip(canvas.subplots(1, len(kept), squeeze=False)[0], kept, strict=True):
                axes.imshow(lit(np.searchsorted(levels, each["words"]) / max(1, len(levels) - 1), each["weights"][0]))
                right = each["label"] == each["predicted"]
                axes.set_title(str(each["label"]) if right else f"{each['label']}, not {each['predicted']}", fontsize=8)
                axes.set_axis_off()
        known = sum(each["label"] == each["predicted"] for each in kept)
        return [Figure(path, f"{known} of {len(kept)} digits are known. {self.caption.rstrip('.')}. {ROLLED_OUT}")]


def lit(ink: NDArray[np.floating], weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """A square picture (S, S, 3) of n pixels row by row, black where they are 1, on a ground as red as their weights.

    Args:
        ink: (n,) from 0 to 1; what is missing of the square is 0.
        weights: (n,), the largest of which is red.
    """
    side = int(np.ceil(np.sqrt(len(ink))))
    ink, red = (np.pad(x, (0, side**2 - len(ink))).reshape(side, side, 1) for x in (ink, weights / weights.max()))
    return (1 - DARKEST * ink) * (1 - red * (1 - RED))


SIZES = (100, 1000, 10_000, 60_000)
FIGURES = [
    Growth(
        {f"{kind}-10000": {size: f"{kind}-{size}" for size in SIZES} for kind in ("vit", "cnn")},
        claim="D21-C2", counterpart="Figure 4",
    ),
    RollOuts("vit-10000", "What the class token of the Vision Transformer attends to.", counterpart="Figure 6"),
    LearningCurves({
        **{f"{size:,} pictures": [f"vit-{size}", f"cnn-{size}"] for size in SIZES},
        "Class token and positions": ["vit-10000", "pooled", "no-positions", "positions-2d"],
    }, CURVES),
]  # fmt: skip
