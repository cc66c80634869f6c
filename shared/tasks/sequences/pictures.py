"""Pictures that models drew pixel by pixel, as in Figures 3 and 4 of Katharopoulos et al. (2020).

Shape letters: N pictures, H height, W width, C channels (1 or 3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Figure
from shared.reports.figures import INK, WIDTH, drawing
from shared.reports.naming import name_of

Pictures = NDArray[np.uint8]
"""(N, H, W, C)"""
Line = tuple[str, Pictures]
"""The label before a line of pictures, and the pictures."""

UNSEEN = "#b9cbe0"  # of pixels that are not given: no shade of grey, as pictures have them
COLUMNS = 12  # pictures in a line
EDGE, NAME, GAP = 0.04, 1.3, 0.05  # inches: around everything, before the pictures, between them
LARGEST = 0.8  # inches, of a picture's side
POINTS, LETTERS = 9.0, 17  # of a name, and how many letters of it fit
SAMPLED = "Pictures that the models (of their first seeds) drew pixel by pixel, each from those before it."
COMPLETED = (
    "Test pictures of which the models (of their first seeds) were given the first {given:,} of {all:,} values, and "
    "drew the others one by one."
)


@dataclass(frozen=True)
class Drawn:
    """Pictures that the model of one seed drew.

    Attributes:
        samples: from nothing.
        occluded: test pictures of which so many values are ``given``, row by row, a pixel's channels one after another.
        completed: the same, with what the model drew.
        true: the same, as they are.
        given: see above.
    """

    samples: Pictures
    occluded: Pictures
    completed: Pictures
    true: Pictures
    given: int

    @classmethod
    def load(cls, path: Path) -> Drawn | None:
        """From pictures.npz; None if there is no such file.

        Raises:
            ReplicationError: it cannot be read.
        """
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                pictures = {name: arrays[name] for name in ("samples", "occluded", "completed", "true")}
                return cls(given=int(arrays["given"]), **pictures)
        except (KeyError, ValueError, EOFError, BadZipFile) as error:
            raise ReplicationError(f"{path} is damaged ({error}); run its evaluate stage again.") from None

    @property
    def asked(self) -> tuple[int, bytes]:
        """The same for models that had the same to complete."""
        return self.given, self.true.tobytes()

    @property
    def beginnings(self) -> Pictures:
        """(N, H, W, 3) the given values, what is not given in a colour of its own."""
        count, height, width, channels = self.occluded.shape
        shown = coloured(self.occluded).reshape(count, height * width, 3)
        shown[:, -(-self.given // channels) :] = np.rint(255 * np.array(to_rgb(UNSEEN)))
        return shown.reshape(count, height, width, 3)


def picture_figures(results: Mapping[str, RunResults], folder: Path, variants: Sequence[str]) -> list[Figure]:
    """Draw what models drew, into ``folder``: a figure ``samples_<task>.png`` for every task, and ``completions_…``.

    Args:
        results: all variants.
        folder: where the PNGs go.
        variants: those shown; one that was not run, or drew nothing, is left out. Those that completed the same
            pictures share a figure, which has the name of the first.

    Raises:
        ReplicationError: see :meth:`Drawn.load`.
    """
    runs = [results[variant] for variant in variants if variant in results and results[variant].seeds]
    drawn = {run.variant: found for run in runs if (found := Drawn.load(run.pictures(run.seeds[0])))}
    tasks: dict[str, list[Line]] = defaultdict(list)
    alike: dict[tuple[int, bytes], list[str]] = defaultdict(list)
    for variant, pictures in drawn.items():
        tasks[results[variant].task].append((name_of(variant), pictures.samples))
        alike[pictures.asked].append(variant)
    figures = []
    for task, lines in tasks.items():
        path = folder / f"samples_{task}.png"
        draw_pictures(lines, path)
        figures.append(Figure(path, f"Task {task}. {SAMPLED}"))
    for (given, _), names in alike.items():
        first, path = drawn[names[0]], folder / f"completions_{names[0]}.png"
        completed = [(name_of(name), drawn[name].completed) for name in names]
        draw_pictures([("given", first.beginnings), *completed, ("true", first.true)], path)
        said = COMPLETED.format(given=given, all=first.true[0].size)
        figures.append(Figure(path, f"Task {results[names[0]].task}. {said}"))
    return figures


def draw_pictures(lines: Sequence[Line], path: Path) -> None:
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
                row, column = divmod(place, columns)
                x, y = EDGE + NAME + column * across, top + row * down
                frame = (x, x + across - GAP, y + down - GAP, y)
                axes.imshow(picture, extent=frame, interpolation="nearest")
            top += -(-len(pictures) // columns) * down
        axes.set(xlim=(0, WIDTH), ylim=(height, 0), aspect="auto")


def coloured(pictures: Pictures) -> Pictures:
    """(N, H, W, C) to (N, H, W, 3), a copy."""
    return np.repeat(pictures, 3, axis=-1) if pictures.shape[-1] == 1 else pictures.copy()
