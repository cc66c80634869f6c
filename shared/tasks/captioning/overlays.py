"""Pictures lit where attention falls at each word of their caption, as in Figures 2, 3 and 5 of Xu et al. (2015)."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

from shared.reports.explorer import Attention, Explored
from shared.reports.figures import INK, WIDTH, drawing
from shared.reports.naming import PALETTE, name_and_id

SMOOTHING = 20 / 224  # of the image's width: the standard deviation in the authors' alpha_visualization.ipynb
DARKEST = 0.25  # share of its brightness that a picture keeps where no attention falls
COLUMNS, LONGEST = 8, 23  # pictures in a line; words of a caption whose pictures fill three lines
EDGE, GAP, LINE = 0.04, 0.05, 0.17  # inches: around everything, between pictures, of a line of text
SIZE = (WIDTH - 2 * EDGE - (COLUMNS - 1) * GAP) / COLUMNS  # inches, of a picture
PICTURE_COLOURS = 128  # of a picture that a reader explores: a photograph of 224 pixels has 35 KB
POINTS, LETTERS = 8.0, 120  # of all text; in a line of it
PALE = "#59636e"
SAID = (
    "Above each picture: the word that is written while it is looked at. The brighter, the more weight, upsampled and "
    "smoothed as in the paper's figures; brightest where there is most."
)
GATES, BOXES = "Below: the gate β.", "Frames: the boxes of the objects."


@dataclass(frozen=True)
class KeptImage:
    """A test image with the caption that a model wrote and what it looked at.

    Attributes:
        id: of the example.
        image: (H, W, 3) RGB.
        words: (T,) of the caption, the end symbol included.
        weights: (T, rows, columns) attention; each word's sums to one.
        gates: (T,) β; empty where the model has none.
        boxes: (O, 4) left, top, right, bottom of the objects, in pixels; empty where unknown.
        references: captions written by others.
        correct: whether all that the caption says is so, where that is known.
    """

    id: str
    image: NDArray[np.uint8]
    words: list[str]
    weights: NDArray[np.float32]
    gates: list[float]
    boxes: NDArray[np.float64]
    references: list[str]
    correct: bool | None

    @property
    def split(self) -> str:
        """The split that the image is of."""
        return self.id.rpartition("-")[0]

    @property
    def judged(self) -> str:
        """Where the image is from, and whether the caption is right where that is known."""
        said = {True: ", caption true ✔", False: ", caption not true ✘", None: ""}[self.correct]
        return f"{self.id}{said}; a reference: {self.references[0]}"


def read_images(source: Path) -> list[KeptImage]:
    """The images in attention.npz; none if there is no such file or the model does not attend."""
    if not source.exists():
        return []
    with np.load(source, allow_pickle=False) as arrays:
        numbers = sorted(int(name.removeprefix("weights_")) for name in arrays if name.startswith("weights_"))
        grid = (int(arrays["rows"]), int(arrays["columns"])) if numbers else (0, 0)
        return [_image(arrays, number, grid) for number in numbers]


def _image(arrays: Mapping[str, NDArray[Any]], number: int, grid: tuple[int, int]) -> KeptImage:
    def kept(name: str) -> NDArray[Any]:
        return arrays[f"{name}_{number}"] if f"{name}_{number}" in arrays else np.empty(0)

    correct = kept("correct")
    return KeptImage(
        id=str(kept("id").item()),
        image=kept("image"),
        words=[str(word) for word in kept("words")],
        weights=kept("weights").reshape(-1, *grid),
        gates=kept("gates").tolist(),
        boxes=kept("boxes").reshape(-1, 4).astype(np.float64),
        references=[str(text) for text in kept("references")],
        correct=bool(correct.item()) if correct.size else None,
    )


def draw_overlays(variant: str, source: Path, path: Path, caption: str, *, most: int = 4) -> list[Explored]:
    """Draw what a model looks at while it writes each word of its captions of several images.

    Half of the captions are wrong ones, as far as that is known and there are so many.

    Args:
        variant: whose captions.
        source: attention.npz with ``image_<k>``, ``words_<k>``, ``weights_<k>``, ``id_<k>``, ``references_<k>`` and
            perhaps ``gates_<k>``, ``boxes_<k>`` and ``correct_<k>`` (see :class:`KeptImage`), ``rows`` and ``columns``.
        path: of the PNG.
        caption: says whose attention it is.
        most: images drawn.

    Returns:
        the figure; nothing if there is no such file or the model does not attend.
    """
    images = chosen(read_images(source), most)
    if not images:
        return []
    titles = [
        textwrap.wrap(f"({letter}) {image.judged}", LETTERS) for letter, image in zip("abcdefgh", images, strict=False)
    ]
    heights = [LINE * len(title) + _height(image) for title, image in zip(titles, images, strict=True)]
    with drawing(path, height=sum(heights), shaded=True) as canvas:
        canvas.set_layout_engine("none")
        top = 0.0
        for title, image, height in zip(titles, images, heights, strict=True):
            for i, line in enumerate(title):
                _write(canvas, line, EDGE, top + (i + 0.75) * LINE)
            _draw(canvas, image, top + LINE * len(title))
            top += height
    said = {GATES: any(image.gates for image in images), BOXES: any(len(image.boxes) for image in images)}
    words = " ".join([f"{caption.rstrip('.')}.", SAID, *(text for text in said if said[text])])
    return [Explored(path, words, maps=maps_of_pictures(variant, images, path.parent))]


def maps_of_pictures(variant: str, images: Sequence[KeptImage], folder: Path) -> list[Attention]:
    """From every word of each image's caption to the image's places; the images are written to ``folder``."""
    maps = []
    for image in images:
        picture = folder / f"picture_{image.id}.png"
        shown = Image.fromarray(image.image).quantize(PICTURE_COLOURS, method=Image.Quantize.MEDIANCUT)
        shown.save(picture, optimize=True)
        choices = {"Model": name_and_id(variant), "Picture": f"{image.id}: {' '.join(image.words[:-1])}"}
        weights = image.weights.reshape(len(image.words), -1).astype(float).tolist()
        maps.append(Attention(choices, image.words, (), weights, True, picture, image.weights.shape[2]))
    return maps


def chosen(images: Sequence[KeptImage], most: int) -> list[KeptImage]:
    """At most so many images, right captions before wrong ones, of each kind half if there are so many.

    The splits take turns. Captions of more than :data:`LONGEST` words are left out if there is a shorter one.
    """
    place: Counter[str] = Counter()
    turns = []
    for image in images:
        if len(image.words) <= LONGEST:
            turns.append((place[image.split], image))
            place[image.split] += 1
    fitting = [image for _, image in sorted(turns, key=lambda turn: turn[0])]
    fitting = fitting or sorted(images, key=lambda image: len(image.words))[:1]
    wrong = [image for image in fitting if image.correct is False]
    right = [image for image in fitting if image.correct is not False]
    shown = right[: max(most // 2, most - len(wrong))]
    return shown + wrong[: most - len(shown)]


def lit(image: NDArray[np.uint8], weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The picture, dark where the weights (rows, columns) are small: (H, W, 3) to (H, W, 3).

    Weights are taken as relative to the largest, after smoothing; so even ones leave the picture as it is.
    """
    height, width, _ = image.shape
    large = Image.fromarray(weights.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR)
    smooth = gaussian_filter(np.asarray(large), SMOOTHING * width)
    light = DARKEST + (1 - DARKEST) * smooth / smooth.max()
    return np.asarray(image * light[..., None]).round().astype(np.uint8)


def _height(image: KeptImage) -> float:
    """Inches of the pictures of an image: itself, and one for every word."""
    return -(-(len(image.words) + 1) // COLUMNS) * _row(image) + GAP


def _row(image: KeptImage) -> float:
    return LINE + SIZE + LINE * bool(image.gates) + GAP


def _draw(canvas: Canvas, image: KeptImage, top: float) -> None:
    words, below = ["", *image.words], ["", *(f"β {gate:.2f}" for gate in image.gates)]
    pictures = [image.image, *(lit(image.image, weights) for weights in image.weights)]
    for place, (word, picture) in enumerate(zip(words, pictures, strict=True)):
        row, column = divmod(place, COLUMNS)
        x, y = EDGE + column * (SIZE + GAP), top + row * _row(image)
        _write(canvas, word, x, y + 0.75 * LINE, size=min(1.0, 13 / max(1, len(word))) * POINTS)
        _picture(canvas, picture, image.boxes, x, y + LINE)
        if image.gates:
            _write(canvas, below[place], x, y + LINE + SIZE + 0.75 * LINE, colour=PALE, size=0.85 * POINTS)


def _picture(canvas: Canvas, picture: NDArray[np.uint8], boxes: NDArray[np.float64], x: float, y: float) -> None:
    """With its upper left corner at (x, y), in inches from the top left."""
    height = canvas.get_figheight()
    axes = canvas.add_axes((x / WIDTH, 1 - (y + SIZE) / height, SIZE / WIDTH, SIZE / height))
    axes.set_axis_off()
    axes.imshow(picture, aspect="auto")
    frame: Any = {"fill": False, "linewidth": 0.7, "edgecolor": PALETTE["orange"]}
    for left, upper, right, lower in boxes:
        axes.add_patch(Rectangle((left, upper), right - left, lower - upper, **frame))


def _write(canvas: Canvas, text: str, x: float, y: float, *, colour: str = INK, size: float = POINTS) -> None:
    """Text from x on, on the base line y, in inches from the top left."""
    height = canvas.get_figheight()
    canvas.text(x / WIDTH, 1 - y / height, text, color=colour, fontsize=size, parse_math=False)
