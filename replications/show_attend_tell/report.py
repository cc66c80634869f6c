"""What the report of this paper shows: BLEU against likelihood in training, and pictures lit where attention falls."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.reports.curves import LearningCurves
from shared.reports.document import Figure
from shared.reports.exhibits import OfVariant, OfVariants, Results
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import COLOURS, INK, WIDTH, drawing, panels_drawn
from shared.reports.naming import PALETTE, name_and_id, name_of
from shared.tasks.captioning.report import CURVES, courses
from shared.tasks.examples import kept_of

Kept = Mapping[str, NDArray[Any]]
"""Of a test image what :func:`shared.tasks.captioning.evaluation.evaluate` keeps in attention.npz."""

STOPPING_DRAWN = (
    "BLEU-4 against likelihood over training, both on the validation split. Each line is the training of one seed, "
    "without its first third; dots: its last third; ring: where BLEU is highest; cross: where likelihood is."
)

SHOWN = 4  # images of a figure
SMOOTHING = 20 / 224  # of the image's width: the standard deviation in the authors' alpha_visualization.ipynb
DARKEST = 0.25  # share of its brightness that a picture keeps where no attention falls
COLUMNS, LONGEST = 8, 23  # pictures in a line; words of a caption whose pictures fill three lines
EDGE, GAP, LINE = 0.04, 0.05, 0.17  # inches: around everything, between pictures, of a line of text
PICTURE_COLOURS = 128  # of a picture that a reader explores: a photograph of 224 pixels has 35 KB
POINTS, LETTERS = 8.0, 120  # of all text; in a line of it
PALE = "#59636e"
LIT = (
    "Above each picture: the word that is written while it is looked at. The brighter, the more weight, upsampled and "
    "smoothed as in the paper's figures; brightest where there is most."
)


class Stopping(OfVariants):
    """A figure ``stopping.png`` of BLEU against likelihood over training, all seeds, a panel for each variant."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if any variant recorded BLEU in training."""
        from matplotlib.lines import Line2D

        runs, path = [results[variant] for variant in self.shown if variant in results], folder / "stopping.png"
        panels = {run.variant: found for run in runs if (found := courses(run))}
        if not panels:
            return ()

        def mark(marker: str) -> dict[str, Any]:
            return {
                "marker": marker, "color": INK, "linestyle": "none", "markerfacecolor": "none", "markersize": 8,
                "markeredgewidth": 1.3,
            }  # fmt: skip

        with panels_drawn(path, len(panels), height=2.5, columns=3, extra=0.5) as (canvas, grid):
            for axes, (variant, found) in zip(grid, panels.items(), strict=True):
                for index, course in enumerate(found):
                    colour = COLOURS[index % len(COLOURS)]
                    late, last = course.after(1 / 3), course.after(2 / 3)
                    axes.plot(late.likelihood, late.bleu, color=colour, alpha=0.55, linewidth=0.9)
                    axes.plot(last.likelihood, last.bleu, ".", color=colour, markersize=5)
                    for marker, place in (("o", course.bleu.argmax()), ("x", course.likelihood.argmax())):
                        axes.plot(course.likelihood[place], course.bleu[place], **mark(marker))
                axes.set_title(name_of(variant))
                axes.locator_params(nbins=5)
            canvas.supxlabel(f"Log-likelihood (nats per {runs[0].token})", fontsize="medium")
            canvas.supylabel("BLEU-4", fontsize="medium")
            dots = Line2D([], [], color=COLOURS[0], marker=".", linewidth=0.9, label="last third of training")
            ends = {"o": "highest BLEU", "x": "highest likelihood"}
            handles = [dots, *(Line2D([], [], label=label, **mark(marker)) for marker, label in ends.items())]
            canvas.legend(handles=handles, loc="outside upper left", ncols=3)
        every = [course for found in panels.values() for course in found]
        alike = sum(course.bleu.argmax() == course.likelihood.argmax() for course in every)
        said = f"In {alike} of {len(every)} trainings BLEU is highest where likelihood is."
        return [Figure(path, f"{said} {STOPPING_DRAWN}")]


class Overlays(OfVariant):
    """A figure ``overlays_<variant>.png`` of test images lit word by word where attention falls.

    Xu et al. (2015) have such in Figures 2, 3 and 5. Half of the captions are wrong ones, as far as that is known.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant attends and has kept it."""
        images = choose_images([image for image in kept_of(results, self.variant) if "weights" in image])
        if not images:
            return ()
        path = folder / f"overlays_{self.variant}.png"
        draw_overlays(images, path)
        said = {"gates": "Below: the gate β.", "boxes": "Frames: the boxes of the objects."}
        seen = [text for name, text in said.items() if any(len(image.get(name, ())) for image in images)]
        maps = [_map(self.variant, image, folder) for image in images]
        return [Explored(path, " ".join([f"{self.caption.rstrip('.')}.", LIT, *seen]), maps=maps)]


def choose_images(images: Sequence[Kept], most: int = SHOWN) -> list[Kept]:
    """At most so many images, right captions before wrong ones, of each kind half if there are so many.

    The splits take turns. Captions of more than :data:`LONGEST` words are left out if there is a shorter one.
    """
    place: Counter[str] = Counter()
    turns = []
    for image in images:
        if len(image["words"]) <= LONGEST:
            split = str(image["id"]).rpartition("-")[0]
            turns.append((place[split], image))
            place[split] += 1
    fitting = [image for _, image in sorted(turns, key=lambda turn: turn[0])]
    fitting = fitting or sorted(images, key=lambda image: len(image["words"]))[:1]
    wrong = [image for image in fitting if image.get("correct") == 0]
    right = [image for image in fitting if image.get("correct") != 0]
    shown = right[: max(most // 2, most - len(wrong))]
    return shown + wrong[: most - len(shown)]


def draw_overlays(images: Sequence[Kept], path: Path) -> None:
    """Draw each image, and again for every word of its caption, lit where the model looks while it writes the word."""
    from matplotlib.patches import Rectangle

    size = (WIDTH - 2 * EDGE - (COLUMNS - 1) * GAP) / COLUMNS  # inches, of a picture
    titles = [
        textwrap.wrap(f"({letter}) {_said(image)}", LETTERS) for letter, image in zip("abcdefgh", images, strict=False)
    ]
    rows = [LINE + size + LINE * ("gates" in image) + GAP for image in images]
    heights = [
        LINE * len(title) + (-(-(len(image["words"]) + 1) // COLUMNS) * row + GAP)
        for title, image, row in zip(titles, images, rows, strict=True)
    ]
    height = sum(heights)
    with drawing(path, height=height, shaded=True) as canvas:
        canvas.set_layout_engine("none")

        def write(text: str, x: float, y: float, colour: str = INK, points: float = POINTS) -> None:
            """From x on, on the base line y, in inches from the top left."""
            canvas.text(x / WIDTH, 1 - y / height, text, color=colour, fontsize=points, parse_math=False)

        top = 0.0
        for image, title, row, below in zip(images, titles, rows, heights, strict=True):
            for i, line in enumerate(title):
                write(line, EDGE, top + (i + 0.75) * LINE)
            begin, grid = top + LINE * len(title), (int(image["rows"]), int(image["columns"]))
            pictures = [image["image"], *(lit(image["image"], weights.reshape(grid)) for weights in image["weights"])]
            gates = ["", *(f"β {gate:.2f}" for gate in image.get("gates", ()))]
            for place, (word, picture) in enumerate(zip(["", *map(str, image["words"])], pictures, strict=True)):
                x, y = EDGE + place % COLUMNS * (size + GAP), begin + place // COLUMNS * row
                write(word, x, y + 0.75 * LINE, points=min(1.0, 13 / max(1, len(word))) * POINTS)
                axes = canvas.add_axes((x / WIDTH, 1 - (y + LINE + size) / height, size / WIDTH, size / height))
                axes.set_axis_off()
                axes.imshow(picture, aspect="auto")
                frame: Any = {"fill": False, "linewidth": 0.7, "edgecolor": PALETTE["orange"]}
                for left, upper, right, lower in image.get("boxes", ()):
                    axes.add_patch(Rectangle((left, upper), right - left, lower - upper, **frame))
                if "gates" in image:
                    write(gates[place], x, y + LINE + size + 0.75 * LINE, PALE, 0.85 * POINTS)
            top += below


def _said(image: Kept) -> str:
    """Where the image is from, and whether the caption is right where that is known."""
    known = "correct" in image
    right = (", caption true ✔" if image["correct"] else ", caption not true ✘") if known else ""
    return f"{image['id']}{right}; a reference: {image['references'][0]}"


def lit(image: NDArray[np.uint8], weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The picture, dark where the weights (rows, columns) are small: (H, W, 3) to (H, W, 3).

    Weights are taken as relative to the largest, after smoothing; so even ones leave the picture as it is.
    """
    from PIL import Image
    from scipy.ndimage import gaussian_filter

    height, width, _ = image.shape
    large = Image.fromarray(weights.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR)
    smooth = gaussian_filter(np.asarray(large), SMOOTHING * width)
    light = DARKEST + (1 - DARKEST) * smooth / smooth.max()
    return np.asarray(image * light[..., None]).round().astype(np.uint8)


def _map(variant: str, image: Kept, folder: Path) -> Attention:
    """From every word of an image's caption to the image's places; the image is written to ``folder``."""
    from PIL import Image

    picture, words = folder / f"picture_{image['id']}.png", [*map(str, image["words"])]
    colours = Image.fromarray(image["image"]).quantize(PICTURE_COLOURS, method=Image.Quantize.MEDIANCUT)
    colours.save(picture, optimize=True)
    choices = {"Model": name_and_id(variant), "Picture": f"{image['id']}: {' '.join(words[:-1])}"}
    weights = image["weights"].astype(float).tolist()
    return Attention(choices, words, (), weights, True, picture, int(image["columns"]))


_OPENMOJI = "Pictures: OpenMoji (openmoji.org), CC BY-SA 4.0. This figure has the same licence."
PANELS = {
    "Attention and none": ["soft", "soft-no-gate", "soft-penalty-0", "hard", "mean"],
    "What attention learns by": ["soft", "soft-penalty-code", "soft-penalty-0", "supervised", "hard"],
    "On photographs": ["flickr8k-soft", "flickr8k-soft-penalty-0", "flickr8k-hard", "flickr8k-mean"],
}
_WORDS, _WORDS_HARD = "Figures 2, 3 and 5", "Figures 2 and 5"
FIGURES = [
    Overlays(
        "soft", f"Soft attention, word by word, with the paper's penalty. {_OPENMOJI}",
        claim="X15-C4", counterpart=_WORDS,
    ),
    Overlays(
        "soft-penalty-0", f"Soft attention without the penalty, in the same pictures. {_OPENMOJI}", claim="X15-C5",
    ),
    Overlays(
        "hard", f"Hard attention in the same pictures: the probability of every place. {_OPENMOJI}",
        claim="X15-C2", counterpart=_WORDS_HARD,
    ),
    Overlays("flickr8k-soft", "Soft attention on photographs.", claim="X15-C4", counterpart=_WORDS),
    Overlays("flickr8k-hard", "Hard attention on the same photographs.", claim="X15-C2", counterpart=_WORDS_HARD),
    Stopping(["soft", "flickr8k-soft", "flickr8k-quarter-soft"], claim="X15-C6"),
    LearningCurves(PANELS, CURVES),
]  # fmt: skip
