"""The figures of classification papers: texts whose words stand on a ground as red as the attention to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.reports.curves import ERROR_LABEL, LOSS, Curve
from shared.reports.document import Figure, Heat, HeatLine
from shared.reports.exhibits import OfVariant, OfVariants, Results
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import INK, WIDTH, drawing, fitting
from shared.reports.naming import name_and_id, name_of
from shared.tasks.examples import kept_alike, kept_of

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

Kept = Mapping[str, NDArray[Any]]
"""Of a test text what :func:`shared.tasks.classification.evaluation.kept_texts` keeps in attention.npz."""

TEXTS, ROWS, SYMBOLS = 4, 6, 30  # of a figure: its texts; of single rows, how many, on a text of at most so many words
RED, PALE = (242 / 255, 92 / 255, 72 / 255), "#59636e"
FAINTEST = 0.02  # shade that is drawn
POINTS = 9.0  # of all words
LINE, EDGE = 0.215, 0.04  # inches: from line to line, around everything
GAP, SPACE_IN_TITLE = 0.06, 0.04  # inches between words with a ground of their own, and without
INDENT = 0.28  # inches that a line's name takes
PAGE = 7.0 - EDGE  # inches from the left at which lines end
CURVES = (LOSS, Curve("error", "Share of the validation split classified wrongly, against updates", ERROR_LABEL))
"""What validation finds."""


class HeatTexts(OfVariant):
    """A figure ``heat_<variant>.png`` of test texts whose words are coloured by attention.

    Lin et al. (2017) have such in Figures 1 and 3. A word's weight is its mean over the rows.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        texts = kept_of(results, self.variant)[:TEXTS]
        if not texts:
            return ()
        lines = [
            _line(text, text["weights"].mean(axis=0), title=f"({letter}) {_said(text)}")
            for letter, text in zip("abcd", texts, strict=False)
        ]
        of_rows = "Where there are several rows, a word's weight is its mean over them."
        return [draw_heat(lines, folder / f"heat_{self.variant}.png", f"{self.caption.rstrip('.')}. {of_rows}")]


@dataclass(frozen=True)
class HeatRows(OfVariants):
    """A figure ``heat_rows_<variant>_<variant>….png`` of single rows of attention on one test text, below each other.

    With and without the penalty this is Figure 2 of Lin et al. (2017). Of many rows some, evenly spread, are drawn. The
    text is the longest kept of at most :data:`SYMBOLS` words; if all have more, the shortest. Each variant shows its
    first seed.

    Attributes:
        caption: says what is compared.
    """

    caption: str

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if there is something to compare.

        Raises:
            ReplicationError: the variants have kept different texts.
        """
        kept = kept_alike(results, self.shown, ["words"])
        if len(kept) < min(2, len(self.shown)) or not kept:
            return ()
        chosen = fitting([len(text["words"]) for text in next(iter(kept.values()))], SYMBOLS)
        texts = {variant: of[chosen] for variant, of in kept.items()}
        drawn = draw_heat(
            [line for variant, text in texts.items() for line in lines_of_rows(variant, text)],
            folder / f"heat_rows_{'_'.join(self.shown)}.png",
            f"{self.caption.rstrip('.')}. The numbers are those of the rows of A.",
        )
        maps = []
        for variant, text in texts.items():
            rows, weights = [str(row + 1) for row in range(len(text["weights"]))], text["weights"].astype(float)
            words = text["words"].tolist()
            maps.append(Attention({"Model": name_and_id(variant)}, rows, words, weights.tolist(), of_largest=True))
        return [Explored(drawn.path, drawn.caption, maps=maps, choose="Choose a row of A:")]


def lines_of_rows(variant: str, text: Kept) -> list[HeatLine]:
    """The rows of attention that are drawn of a text, evenly spread; the first has a title."""
    count = len(text["weights"])
    shown = np.unique(np.linspace(0, count - 1, ROWS).round().astype(int)).tolist()
    said = f"{len(shown)} of {count} rows, evenly spread" if len(shown) < count else f"all {count} rows"
    title = f"{name_of(variant)}: {_said(text)}, {said if count > 1 else 'its one row'}"
    return [_line(text, text["weights"][i], title=title if i == shown[0] else "", name=str(i + 1)) for i in shown]


def _said(text: Kept) -> str:
    """The label, and what else was predicted if it was."""
    right = text["label"] == text["predicted"]
    return f"{text['label']} ✔" if right else f"{text['label']}, predicted {text['predicted']} ✘"


def _line(text: Kept, weights: NDArray[np.float32], *, title: str, name: str = "") -> HeatLine:
    shades = weights / max(float(weights.max()), 1e-12)
    return HeatLine(text["words"].tolist(), shades.tolist(), frozenset(map(int, text.get("evidence", ()))), title, name)


class _Word(NamedTuple):
    """A word at the left end of its base line, in inches from the top left."""

    word: str
    x: float
    y: float
    shade: float = 0.0
    marked: bool = False
    pale: bool = False
    framed: bool = False


def draw_heat(lines: Sequence[HeatLine], path: Path, caption: str) -> Heat:
    """Draw texts whose words stand on a ground as red as their shade, with a legend below."""
    from matplotlib.patches import FancyBboxPatch

    heat = Heat(path, caption, lines=lines)
    placed, bottom = list[_Word](), EDGE + 0.75 * LINE  # y is the base line's distance from the top
    for line in lines:
        if line.title:
            bottom += 0.3 * LINE * (line is not lines[0])
            title, bottom = _flow(line.title.split(), EDGE, bottom, gap=SPACE_IN_TITLE)
            placed += title
            bottom += LINE
        if line.name:
            placed.append(_Word(line.name, EDGE, bottom, pale=True))
        words, bottom = _flow(line.words, EDGE + INDENT * bool(line.name), bottom)
        placed += [word._replace(shade=line.shades[i], marked=i in line.marked) for i, word in enumerate(words)]
        bottom += LINE
    x, y = EDGE, bottom + 0.3 * LINE
    shades = [("\N{EM SPACE}", shade) for shade in (0.0, 0.25, 0.5, 0.75, 1.0)]
    for said, shade in (("no weight", 0.0), *shades, ("largest weight", 0.0)):
        placed.append(_Word(said, x, y, shade, pale=True, framed=said.isspace()))
        x += _width(said) + GAP + 0.04 * said.isspace()
    if any(line.marked for line in heat.lines):
        placed.append(_Word("evidence", x + 2 * GAP, y, marked=True, pale=True))
    height = bottom + 0.8 * LINE
    with drawing(path, height=height) as canvas:
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0.0, WIDTH), ylim=(height, 0.0))
        axes.set_axis_off()
        for word, x, y, shade, marked, pale, framed in placed:
            width, colour = _width(word), PALE if pale else INK
            if shade >= FAINTEST or framed:
                axes.add_patch(FancyBboxPatch(
                    (x, y - 0.112), width, 0.137, boxstyle="round,pad=0.02,rounding_size=0.03",
                    facecolor=(*RED, shade), edgecolor="#d8dee4" if framed else "none", linewidth=0.8,
                ))  # fmt: skip
            axes.text(x, y, word, color=colour, fontsize=POINTS, parse_math=False)
            if marked:
                axes.hlines(y + 0.032, x, x + width, color=colour, linewidth=1.2)
    return heat


def _flow(words: Sequence[str], left: float, y: float, gap: float = GAP) -> tuple[list[_Word], float]:
    """Words, as they can be drawn, set in lines from (left, y) on; and the base line of the last.

    A word is without what the font lacks, and cut short where it is longer than a line.
    """
    placed, x = list[_Word](), left
    for word in words:
        word = "".join(letter if _has(letter) else "□" for letter in word[:200])
        while _width(word) > PAGE - left:
            word = f"{word[:-4]}…"
        if x > left and x + _width(word) > PAGE:
            x, y = left, y + LINE
        placed.append(_Word(word, x, y))
        x += _width(word) + gap
    return placed, y


@cache
def _has(letter: str) -> bool:
    from matplotlib.font_manager import findfont, get_font

    return bool(get_font(findfont(_font())).get_char_index(ord(letter)))


@cache
def _width(word: str) -> float:
    """Inches."""
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(word, _font(), ismath=False)
    return float(width) / 72.0


@cache
def _font() -> FontProperties:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=POINTS)
