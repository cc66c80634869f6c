"""Attention as pictures, and as data for the explorer: of several sentences by one variant, of one by several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shared.errors import ReplicationError
from shared.reports.document import Figure
from shared.reports.exhibits import Exhibit, OfVariant, Results, first_run, run_ones
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import WIDTH, bar_of_weights, draw_weights, drawing, fitting
from shared.reports.naming import PALETTE, name_and_id, name_of
from shared.tasks.examples import read_kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = Mapping[str, Any]
BAR = 0.3  # inches of the bar below
SENTENCES = 4  # of each variant, as data
SYMBOLS = 40  # of such a sentence's longer side: more would be no pleasure to read


def alignment_heatmaps(source: Path, path: Path, *, most: int = 4) -> bool:
    """Draw attention weights of sentence pairs, source on top, target on the side.

    As Figure 3 of Bahdanau et al. (2015), but the darker, the more weight; a gold link, where known, is framed.

    Args:
        source: attention.npz with ``weights_<i>`` (T, S), ``source_<i>`` (S,), ``target_<i>`` (T,) and
            perhaps ``gold_<i>`` (links, 2) as (source, target) positions.
        path: of the PNG.
        most: sentence pairs drawn.

    Returns:
        whether the file was there; if not, nothing is drawn.
    """
    pairs = read_kept(source)[:most]
    if not pairs:
        return False
    columns = 2 if _longest(pairs) <= 20 and len(pairs) > 1 else 1
    _grid(path, pairs, [f"({letter})" for letter in "abcdefghijklmnop"[: len(pairs)]], columns)
    return True


def compare_alignments(sources: Mapping[str, Path], path: Path, *, symbols: int = 14) -> bool:
    """Draw the attention of several variants on the same test sentence side by side.

    Colours as in :func:`alignment_heatmaps`, except that a weight of exactly zero is beige: so local attention
    shows its window.

    Args:
        sources: variant to its attention.npz, all of the same sentences in the same order.
        path: of the PNG.
        symbols: the sentence drawn is the longest kept with at most so many on either side; if all have more,
            the shortest.

    Returns:
        whether at least two of the files were there; if not, nothing is drawn.

    Raises:
        ReplicationError: the files are of different sentences.
    """
    kept = {variant: pairs for variant, source in sources.items() if (pairs := read_kept(source))}
    if len(kept) < 2:
        return False
    first = next(iter(kept.values()))
    chosen = fitting(longer_sides(first), symbols)
    shown = []
    for variant, pairs in kept.items():
        if not _same(first, pairs):
            raise ReplicationError(
                f"the attention kept of {variant} is not of the same sentences as that of {next(iter(kept))}; "
                "evaluate both again."
            )
        shown.append({**pairs[chosen], "weights": np.ma.masked_equal(pairs[chosen]["weights"], 0.0)})
    _grid(path, shown, [*map(name_of, kept)], 2 if _longest(shown) <= 20 else 1)
    return True


def _longest(pairs: Sequence[Pair]) -> int:
    return max(max(len(pair["source"]), len(pair["target"])) for pair in pairs)


def longer_sides(pairs: Sequence[Pair]) -> list[int]:
    """Symbols of each pair's source or target, whichever has more."""
    return [_longest([pair]) for pair in pairs]


def _same(first: Sequence[Pair], other: Sequence[Pair]) -> bool:
    both = zip(first, other, strict=False)
    return len(first) == len(other) and all(
        np.array_equal(a[side], b[side]) for a, b in both for side in ("source", "target")
    )


def _grid(path: Path, pairs: Sequence[Pair], labels: Sequence[str], columns: int) -> None:
    lines = [pairs[first : first + columns] for first in range(0, len(pairs), columns)]
    heights = [_panel_height(line, columns) for line in lines]
    with drawing(path, height=sum(heights) + BAR) as canvas:
        panels = canvas.subplots(len(lines), columns, squeeze=False, height_ratios=heights).ravel()
        for axes, pair, label in zip(panels, pairs, labels, strict=False):
            _heatmap(axes, pair, size=7.5 if _longest(pairs) > 12 else 8.5)
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


def maps_of_sentences(sources: Mapping[str, Path]) -> list[Attention]:
    """From every target word to the source words, by model and sentence.

    Args:
        sources: variant to its attention.npz, as :func:`read_kept` reads it; those that are not there are left out.
    """
    maps = []
    for variant, source in sources.items():
        pairs = [pair for pair in read_kept(source) if max(pair["weights"].shape) <= SYMBOLS]
        for number, pair in enumerate(pairs[:SENTENCES], start=1):
            choices = {"Model": name_and_id(variant), "Attention": "to the source", "Sentence": str(number)}
            rows, columns = [*map(str, pair["target"])], [*map(str, pair["source"])]
            maps.append(Attention(choices, rows, columns, pair["weights"].astype(float).tolist()))
    return maps


class Heatmaps(OfVariant):
    """A figure ``alignments_<variant>.png`` of attention on several test sentences."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        run, path = first_run(results, self.variant), folder / f"alignments_{self.variant}.png"
        if run is None or not alignment_heatmaps(run.attention(run.seeds[0]), path):
            return ()
        return [Explored(path, self.caption, maps=maps_of_sentences({run.variant: run.attention(run.seeds[0])}))]


@dataclass(frozen=True)
class SideBySide(Exhibit):
    """A figure ``alignments_<variant>_<variant>….png`` of the attention of several variants on one test sentence.

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
        sources = {run.variant: run.attention(run.seeds[0]) for run in run_ones(results, self.compared)}
        path = folder / f"alignments_{'_'.join(self.compared).replace('/', '-')}.png"
        if not compare_alignments(sources, path):
            return ()
        caption = f"{self.caption} Beige: a weight of exactly zero."
        return [Explored(path, caption, maps=maps_of_sentences(sources))]
