"""What the report of this paper shows, as its Figures 3 and 4 pictures that models drew pixel by pixel.

Shape letters: N pictures, H height, W width, C channels (1 or 3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.reports.curves import StudyLines, StudyPanel
from shared.reports.document import Figure, extremes
from shared.reports.exhibits import OfVariants, Results, first_run
from shared.reports.figures import INK, WIDTH, drawing
from shared.reports.naming import name_of
from shared.tasks.examples import read_arrays
from shared.tasks.sequences.report import curves

Lines = Sequence[tuple[str, NDArray[np.uint8]]]
"""The label before a line of pictures, and the pictures (N, H, W, C)."""

DRAWN = ("samples", "occluded", "completed", "true", "given")
"""What :func:`shared.tasks.sequences.evaluation.draw_pictures` wrote."""
COLUMNS = 12  # pictures in a line
EDGE, NAME, GAP = 0.04, 1.3, 0.05  # inches: around everything, before the pictures, between them
LARGEST = 0.8  # inches, of a picture's side
POINTS, LETTERS = 9.0, 17  # of a name, and how many letters of it fit
SAMPLED = "Pictures that the models (of their first seeds) drew pixel by pixel, each from those before it."
COMPLETED = (
    "Test pictures of which the models (of their first seeds) were given the first {given:,} of {all:,} values, and "
    "drew the others one by one."
)


class Pictures(OfVariants):
    """Figures ``samples_<task>.png`` and ``completions_<variant>.png`` of pictures that first seeds drew.

    Variants that completed the same pictures share a figure, which has the name of the first.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figures of the variants that drew anything.

        Raises:
            ReplicationError: a file of pictures cannot be read.
        """
        from shared.tasks.tried import UNSEEN

        sampled: dict[str, list[tuple[str, NDArray[np.uint8]]]] = defaultdict(list)
        bits: dict[str, dict[str, float]] = defaultdict(dict)
        completed: dict[tuple[int, bytes], dict[str, dict[str, NDArray[np.uint8]]]] = defaultdict(dict)
        for run in (first_run(results, variant) for variant in self.shown):
            if run is not None and (drawn := read_arrays(run.judged(run.seeds[0], "pictures.npz"), *DRAWN)):
                sampled[run.task].append((name_of(run.variant), drawn["samples"]))
                if "bits" in run.mean:
                    bits[run.task][name_of(run.variant)] = run.mean["bits"]
                completed[int(drawn["given"]), drawn["true"].tobytes()][run.variant] = drawn
        figures = []
        for task, lines in sampled.items():
            path = folder / f"samples_{task}.png"
            draw_pictures(lines, path)
            figures.append(Figure(path, f"{extremes('Bits a test pixel', bits[task])}Task {task}. {SAMPLED}"))
        for (given, _), alike in completed.items():
            variant, first = next(iter(alike.items()))
            path, whole = folder / f"completions_{variant}.png", first["true"]
            beginnings = coloured(first["occluded"]).reshape(len(whole), -1, 3)
            beginnings[:, -(-given // whole.shape[-1]) :] = UNSEEN
            drew = [(name_of(name), drawn["completed"]) for name, drawn in alike.items()]
            draw_pictures([("given", beginnings.reshape(*whole.shape[:3], 3)), *drew, ("true", whole)], path)
            said = COMPLETED.format(given=given, all=whole[0].size)
            same = {name_of(name): float((of["completed"] == whole).mean()) for name, of in alike.items()}
            found = extremes("Share of the values that are those of the picture, with those given", same)
            figures.append(Figure(path, f"{found}Task {results[variant].task}. {said}"))
        return figures


def draw_pictures(lines: Lines, path: Path) -> None:
    """Draw rows of pictures with their names before them; those that do not fit beside each other go on below.

    Args:
        lines: at least one, none without pictures.
        path: of the PNG.
    """
    most = max(len(pictures) for _, pictures in lines)
    columns = -(-most // -(-most // COLUMNS))  # rows of about the same length
    across = min(LARGEST + GAP, (WIDTH - 2 * EDGE - NAME + GAP) / columns)
    down = (across - GAP) * lines[0][1].shape[1] / lines[0][1].shape[2] + GAP
    height = 2 * EDGE + sum(-(-len(pictures) // columns) for _, pictures in lines) * down - GAP
    with drawing(path, height=height, shaded=lines[-1][1].shape[-1] == 3) as canvas:
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0, 0, 1, 1))  # in inches from the upper left
        axes.set_axis_off()
        top = EDGE
        for name, pictures in lines:
            size = POINTS * min(1.0, LETTERS / len(name))
            y = top + (down - GAP) / 2
            axes.text(EDGE, y, name, va="center", color=INK, fontsize=size, parse_math=False)
            for place, picture in enumerate(coloured(pictures)):
                x, y = EDGE + NAME + place % columns * across, top + place // columns * down
                axes.imshow(picture, extent=(x, x + across - GAP, y + down - GAP, y), interpolation="nearest")
            top += -(-len(pictures) // columns) * down
        axes.set(xlim=(0, WIDTH), ylim=(height, 0), aspect="auto")


def coloured(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, H, W, C) to (N, H, W, 3), a copy."""
    return np.repeat(pictures, 3, axis=-1) if pictures.shape[-1] == 1 else pictures.copy()


_LAYERS = {
    "softmax": "softmax", "softmax_plain": "softmax, all weights kept", "lsh_1": "LSH, 1 round",
    "lsh_4": "LSH, 4 rounds", "linear": "linear (ours)",
}  # fmt: skip
_NETWORKS = {
    "softmax": "softmax, anew for every pixel", "stateful_softmax": "softmax, keys and values kept",
    "lsh_1": "LSH, 1 round", "lsh_4": "LSH, 4 rounds", "linear": "linear",
}  # fmt: skip
_LENGTH, _PIXELS = "Length of the sequence", "Pixels so far"
FIGURES = [
    StudyLines("One layer, forward and backward", [
        StudyPanel("scaling", "seconds", _LENGTH, "Seconds", _LAYERS),
        StudyPanel("scaling", "mebibytes", _LENGTH, "Peak memory, MiB", _LAYERS),
    ], claim="K20-C1", counterpart="Figure 1"),
    StudyLines("Time to write one more pixel of a digit", [
        StudyPanel("generation", "milliseconds", _PIXELS, "Milliseconds, one picture", _NETWORKS),
        StudyPanel("generation", "milliseconds_in_batch", _PIXELS, "Milliseconds, share of a batch", _NETWORKS),
    ], claim="K20-C4"),
    curves(
        {"Copying": ["copy-softmax", "copy-linear", "copy-lsh-1", "copy-lsh-4"]}, only="copying",
        claim="K20-C2", counterpart="Figure 2",
    ),
    Pictures(["mnist-linear", "mnist-softmax", "mnist-lsh-1", "cifar10-linear"], claim="K20-C3"),
    curves({"Digits, pixel by pixel": ["mnist-softmax", "mnist-linear", "mnist-lsh-1"]}, only="digits", claim="K20-C3"),
]  # fmt: skip
