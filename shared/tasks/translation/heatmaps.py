"""Attention as pictures, and as data for the explorer: of several sentences by one variant, of one by several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shared.reports.document import Figure
from shared.reports.exhibits import Exhibit, OfVariant, Results
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import WIDTH, bar_of_weights, draw_weights, drawing, fitting
from shared.reports.naming import PALETTE, name_and_id, name_of
from shared.tasks.examples import kept_alike, kept_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = Mapping[str, Any]
BAR = 0.3  # inches of the bar below
DRAWN = 4  # sentences of a variant
COMPARED = 14  # symbols of the longer side
ABREAST = 34  # symbols of the longest sentence of which two stand beside each other
SENTENCES = 4  # of each variant, as data
SYMBOLS = 40  # of such a sentence's longer side: more would be no pleasure to read


def longer_sides(pairs: Sequence[Pair]) -> list[int]:
    """Symbols of each pair's source or target, whichever has more."""
    return [max(len(pair["source"]), len(pair["target"])) for pair in pairs]


def _grid(path: Path, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
    """Draw the weights of pairs, two abreast where they are short."""
    longest = max(longer_sides(pairs))
    columns = 2 if longest <= ABREAST and len(pairs) > 1 else 1
    lines = [pairs[first : first + columns] for first in range(0, len(pairs), columns)]
    heights = [_panel_height(line, columns) for line in lines]
    with drawing(path, height=sum(heights) + BAR) as canvas:
        panels = canvas.subplots(len(lines), columns, squeeze=False, height_ratios=heights).ravel()
        for axes, pair, label in zip(panels, pairs, labels, strict=False):
            _heatmap(axes, pair, size=6 if longest > 20 else 7.5 if longest > 12 else 8.5)
            axes.set_xlabel(label)
        for axes in panels[len(pairs) :]:
            axes.set_visible(False)
        bar_of_weights(canvas, panels)


def _panel_height(pairs: Sequence[Pair], columns: int) -> float:
    """Inches: square cells at the panel's width, plus room for the source words."""
    tallest = max(pair["weights"].shape[0] / pair["weights"].shape[1] for pair in pairs)
    words = max(len(str(word)) for pair in pairs for word in pair["source"])
    return float(min(WIDTH, (WIDTH / columns - 0.9) * min(tallest, 1.6)) + 0.085 * words + 0.5)


def _heatmap(axes: Axes, pair: Pair, *, size: float) -> None:
    from matplotlib.patches import Rectangle

    draw_weights(axes, pair["weights"], columns=pair["source"], rows=pair["target"], size=size)
    for s, t in pair.get("gold", ()):
        axes.add_patch(
            Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, edgecolor=PALETTE["orange"], linewidth=1.2, clip_on=False)
        )


def maps_of_sentences(kept: Mapping[str, Sequence[Pair]]) -> list[Attention]:
    """From every target word to the source words, by model and sentence; of each variant what it has kept."""
    maps = []
    for variant, pairs in kept.items():
        short = [pair for pair in pairs if max(pair["weights"].shape) <= SYMBOLS]
        for number, pair in enumerate(short[:SENTENCES], start=1):
            choices = {"Model": name_and_id(variant), "Attention": "to the source", "Sentence": str(number)}
            rows, columns = [*map(str, pair["target"])], [*map(str, pair["source"])]
            gold = [(int(t), int(s)) for s, t in pair.get("gold", ())]
            maps.append(Attention(choices, rows, columns, pair["weights"].astype(float).tolist(), gold=gold))
    return maps


class Heatmaps(OfVariant):
    """A figure ``alignments_<variant>.png`` of attention on several test sentences, source on top, target on the side.

    As Figure 3 of Bahdanau et al. (2015), but the darker, the more weight; a gold link, where known, is framed.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        kept, path = kept_of(results, self.variant), folder / f"alignments_{self.variant}.png"
        if not kept:
            return ()
        pairs = kept[:DRAWN]
        _grid(path, pairs, [f"({letter})" for letter in "abcd"[: len(pairs)]])
        return [Explored(path, self.caption, maps=maps_of_sentences({self.variant: kept}))]


@dataclass(frozen=True)
class SideBySide(Exhibit):
    """A figure ``alignments_<variant>_<variant>….png`` of the attention of several variants on one test sentence.

    It is the longest kept with at most :data:`COMPARED` symbols on either side; if all have more, the shortest. Colours
    as in :class:`Heatmaps`, except that a weight of exactly zero is beige: so local attention shows its window.

    Attributes:
        caption: says what is compared.
        compared: the variants; each shows its first seed.
    """

    caption: str
    compared: Sequence[str]

    def variants(self) -> Sequence[str]:
        """Those compared."""
        return self.compared

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if at least two of the variants have kept their attention."""
        kept = kept_alike(results, self.compared, ["source", "target"])
        if len(kept) < 2:
            return ()
        path = folder / f"alignments_{'_'.join(self.compared).replace('/', '-')}.png"
        chosen = fitting(longer_sides(next(iter(kept.values()))), COMPARED)
        pairs = [of[chosen] | {"weights": np.ma.masked_equal(of[chosen]["weights"], 0.0)} for of in kept.values()]
        _grid(path, pairs, [*map(name_of, kept)])
        return [Explored(path, f"{self.caption} Beige: a weight of exactly zero.", maps=maps_of_sentences(kept))]
