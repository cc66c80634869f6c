"""Texts whose words stand on a ground as red as their weight, as in Figures 1 to 3 of Lin et al. (2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from shared.errors import ReplicationError
from shared.reports.document import Heat, HeatLine
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import INK, WIDTH, drawing, fitting
from shared.reports.naming import name_and_id, name_of

RED, PALE = (242 / 255, 92 / 255, 72 / 255), "#59636e"
FAINTEST = 0.02  # shade that is drawn
POINTS = 9.0  # of all words
LINE, EDGE = 0.215, 0.04  # inches: from line to line, around everything
GAP, SPACE = 0.06, 0.04  # inches between words with a ground of their own, and without
INDENT = 0.28  # inches that a line's name takes
MOST_ROWS = 6


@dataclass(frozen=True)
class KeptText:
    """A test text with its attention.

    Attributes:
        words: (n,).
        weights: (r, n), rows that sum to one.
        label, predicted: classes.
        evidence: positions of the words that decide the label, where known.
    """

    words: list[str]
    weights: NDArray[np.float32]
    label: str
    predicted: str
    evidence: frozenset[int]

    @property
    def judged(self) -> str:
        """The label, and what else was predicted if it was."""
        if self.label == self.predicted:
            return f"{self.label} ✔"
        return f"{self.label}, predicted {self.predicted} ✘"


def read_texts(source: Path) -> list[KeptText]:
    """The texts in attention.npz; none if there is no such file."""
    if not source.exists():
        return []
    with np.load(source, allow_pickle=False) as arrays:
        numbers = sorted(int(name.removeprefix("words_")) for name in arrays if name.startswith("words_"))
        return [
            KeptText(
                words=[str(word) for word in arrays[f"words_{i}"]],
                weights=arrays[f"weights_{i}"],
                label=str(arrays[f"label_{i}"].item()),
                predicted=str(arrays[f"predicted_{i}"].item()),
                evidence=frozenset(arrays[f"evidence_{i}"].tolist() if f"evidence_{i}" in arrays else ()),
            )
            for i in numbers
        ]


def heat_texts(source: Path, path: Path, caption: str, *, most: int = 4) -> list[Heat]:
    """Draw what the attention to several texts falls on in all: a word's weight is its mean over the rows.

    Args:
        source: attention.npz with ``words_<i>`` (n,), ``weights_<i>`` (r, n), ``label_<i>``, ``predicted_<i>`` and
            perhaps ``evidence_<i>`` (positions).
        path: of the PNG.
        caption: says whose attention it is.
        most: texts drawn.

    Returns:
        the figure; nothing if there is no such file.
    """
    lines = [
        _line(text, text.weights.mean(axis=0), title=f"({letter}) {text.judged}")
        for letter, text in zip("abcdefghijklmnop"[:most], read_texts(source), strict=False)
    ]
    of_rows = "Where there are several rows, a word's weight is its mean over them."
    return _drawn(lines, path, f"{caption.rstrip('.')}. {of_rows}")


def compare_rows(sources: Mapping[str, Path], path: Path, caption: str, *, symbols: int = 30) -> list[Explored]:
    """Draw single rows of attention on one text, those of several variants under each other.

    Of many rows :data:`MOST_ROWS`, evenly spread, are drawn, and named. With and without the penalty this is Figure 2
    of Lin et al. (2017).

    Args:
        sources: variant to its attention.npz, all of the same texts in the same order.
        path: of the PNG.
        caption: says what is compared.
        symbols: the text drawn is the longest kept of at most so many words; if all have more, the shortest.

    Returns:
        the figure; nothing if fewer than two of the files are there, or the only one is not.

    Raises:
        ReplicationError: the files are of different texts.
    """
    kept = {variant: texts for variant, source in sources.items() if (texts := read_texts(source))}
    if len(kept) < min(2, len(sources)) or not kept:
        return []
    first = next(iter(kept.values()))
    chosen = fitting([len(text.words) for text in first], symbols)
    for variant, texts in kept.items():
        if [text.words for text in texts] != [text.words for text in first]:
            raise ReplicationError(
                f"the attention kept of {variant} is not of the same texts as that of {next(iter(kept))}; "
                "evaluate both again."
            )
    lines = [line for variant, texts in kept.items() for line in lines_of_rows(variant, texts[chosen])]
    drawn = _drawn(lines, path, f"{caption.rstrip('.')}. The numbers are those of the rows of A.")
    maps = [_map(variant, texts[chosen]) for variant, texts in kept.items()]
    return [Explored(each.path, each.caption, maps=maps, choose="Choose a row of A:") for each in drawn]


def _map(variant: str, text: KeptText) -> Attention:
    """All rows of attention on a text."""
    rows, weights = [str(row) for row in range(1, len(text.weights) + 1)], text.weights.astype(float).tolist()
    return Attention({"Model": name_and_id(variant)}, rows, text.words, weights, of_largest=True)


def lines_of_rows(variant: str, text: KeptText) -> list[HeatLine]:
    """The rows of attention that are drawn of a text, evenly spread; the first has a title."""
    rows = len(text.weights)
    shown = np.unique(np.linspace(0, rows - 1, MOST_ROWS).round().astype(int)).tolist()
    said = f"{len(shown)} of {rows} rows, evenly spread" if len(shown) < rows else f"all {rows} rows"
    title = f"{name_of(variant)}: {text.judged}, {said if rows > 1 else 'its one row'}"
    return [_line(text, text.weights[row], title=title if row == shown[0] else "", name=str(row + 1)) for row in shown]


def _line(text: KeptText, weights: NDArray[np.float32], *, title: str, name: str = "") -> HeatLine:
    shades = weights / max(float(weights.max()), 1e-12)
    return HeatLine(text.words, shades.tolist(), text.evidence, title, name)


def _drawn(lines: Sequence[HeatLine], path: Path, caption: str) -> list[Heat]:
    if not lines:
        return []
    heat = Heat(path, caption, lines=lines)
    placed, bottom = [], EDGE + 0.75 * LINE  # y is the base line's distance from the top
    for line in lines:
        if line.title:
            bottom += 0.3 * LINE * (line is not lines[0])
            title, bottom = _flow(line.title.split(), EDGE, bottom, gap=SPACE)
            placed += [_Placed(word, x, y) for word, x, y in title]
            bottom += LINE
        if line.name:
            placed.append(_Placed(line.name, EDGE, bottom, colour=PALE))
        words, bottom = _flow(line.words, EDGE + INDENT * bool(line.name), bottom)
        placed += [_Placed(word, x, y, line.shades[i], i in line.marked) for i, (word, x, y) in enumerate(words)]
        bottom += LINE
    placed += _legend(bottom + 0.3 * LINE, marks=heat.marks)
    height = bottom + 0.8 * LINE
    with drawing(path, height=height) as canvas:
        canvas.set_layout_engine("none")
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0.0, WIDTH), ylim=(height, 0.0))
        axes.set_axis_off()
        for word in placed:
            word.draw(axes)
    return [heat]


@dataclass(frozen=True)
class _Placed:
    """A word at the left end of its base line, in inches from the top left."""

    word: str
    x: float
    y: float
    shade: float = 0.0
    marked: bool = False
    colour: str = INK
    framed: bool = False

    def draw(self, axes: Axes) -> None:
        width = _width(self.word)
        if self.shade >= FAINTEST or self.framed:
            ground = FancyBboxPatch(
                (self.x, self.y - 0.112), width, 0.137, boxstyle="round,pad=0.02,rounding_size=0.03",
                facecolor=(*RED, self.shade), edgecolor="#d8dee4" if self.framed else "none", linewidth=0.8,
            )  # fmt: skip
            axes.add_patch(ground)
        axes.text(self.x, self.y, self.word, color=self.colour, fontsize=POINTS, parse_math=False)
        if self.marked:
            axes.hlines(self.y + 0.032, self.x, self.x + width, color=self.colour, linewidth=1.2)


def _legend(y: float, *, marks: bool) -> list[_Placed]:
    said = [("no weight", 0.0), *(("\N{EM SPACE}", shade) for shade in (0.0, 0.25, 0.5, 0.75, 1.0))]
    said.append(("largest weight", 0.0))
    placed, x = [], EDGE
    for word, shade in said:
        placed.append(_Placed(word, x, y, shade, colour=PALE, framed=word.isspace()))
        x += _width(word) + GAP + 0.04 * word.isspace()
    if marks:
        evidence = _Placed("evidence", x + 2 * GAP, y, marked=True, colour=PALE)
        placed.append(evidence)
    return placed


def _flow(
    words: Sequence[str], left: float, y: float, gap: float = GAP
) -> tuple[list[tuple[str, float, float]], float]:
    """Words, as they can be drawn, set in lines from (left, y) on; and the base line of the last."""
    placed, x, room = [], left, WIDTH - EDGE - left
    for word in words:
        word = _fitted(word, room)
        width = _width(word)
        if x > left and x + width > left + room:
            x, y = left, y + LINE
        placed.append((word, x, y))
        x += width + gap
    return placed, y


def _fitted(word: str, room: float) -> str:
    """The word without what the font lacks, and cut short where it is longer than a line."""
    word = "".join(letter if _has(letter) else "□" for letter in word[:200])
    while _width(word) > room:
        word = f"{word[:-4]}…"
    return word


@cache
def _has(letter: str) -> bool:
    return bool(get_font(findfont(_font())).get_char_index(ord(letter)))


@cache
def _width(word: str) -> float:
    """Inches."""
    width, _, _ = text_to_path.get_text_width_height_descent(word, _font(), ismath=False)
    return float(width) / 72.0


@cache
def _font() -> FontProperties:
    return FontProperties(family="DejaVu Sans", size=POINTS)
