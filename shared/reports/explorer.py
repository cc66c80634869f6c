"""Attention as data, which a reader explores on the page word by word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from shared.reports.document import Block, Explorer, Figure, Heading, Paragraph, extremes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TITLE = "Attention, word by word"
INTRODUCTION = (
    "Choose what attends, and see what it attends to. Figures on this page show some of these weights; choosing needs "
    "a browser that runs scripts."
)


@dataclass(frozen=True)
class Attention:
    """Weights that words, or rows of a matrix, give to words, or to the places of a picture.

    Attributes:
        choices: what a reader chooses it by, in this order, such as ``Sentence`` to ``2``, ``Head`` to ``3``. What
            can be chosen depends on what was chosen before.
        rows: what attends.
        columns: what is attended to; of a picture nothing, for its places have no names.
        weights: (rows, columns), from 0 to 1; of a picture its places line by line.
        of_largest: whether weights are shown relative to the largest of their row, as where all are small.
        picture: whose places are attended to.
        across: places in a line of the picture.
        gold: row and column of every link of the true alignment, where it is known.
    """

    choices: Mapping[str, str]
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Sequence[Sequence[float]]
    of_largest: bool = False
    picture: Path | None = None
    across: int = 0
    gold: Sequence[tuple[int, int]] = ()


def maps_of_heads(
    choices: Mapping[str, str], rows: Sequence[str], columns: Sequence[str], weights: NDArray[np.floating]
) -> list[Attention]:
    """The weights of N layers with H heads each, (N, H, rows, columns), chosen by layer and head after ``choices``."""
    return [
        Attention({**choices, "Layer": str(layer), "Head": str(head)}, rows, columns, of_head.astype(float).tolist())
        for layer, of_layer in enumerate(weights, start=1)
        for head, of_head in enumerate(of_layer, start=1)
    ]


@dataclass(frozen=True)
class Explored(Figure):
    """A figure of attention whose weights a reader can choose in the page's explorer.

    Attributes:
        maps: what can be chosen.
        choose: what a reader is asked to do.
    """

    maps: Sequence[Attention] = ()
    choose: str = "Choose a word:"

    @property
    def finding(self) -> str:
        """How often the largest weight of a row is at a true link, and how large it is, by what the maps differ in."""
        by = [name for name in ("Model", "Layer", "Head") if len({each.choices.get(name) for each in self.maps}) > 1]
        largest, right = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
        for each in self.maps:
            name = ", ".join(f"{key.lower()} {each.choices[key]}" for key in by)
            largest[name] += map(max, each.weights)
            for row in {row for row, _ in each.gold}:
                right[name].append((row, each.weights[row].index(max(each.weights[row]))) in each.gold)
        said = {"Words that look most at their partner, share": right, "Largest weight of a row, mean": largest}
        return "".join(extremes(what, {name: fmean(of) for name, of in found.items()}) for what, found in said.items())


def gather_maps(figures: Sequence[Explored]) -> list[Block]:
    """One explorer of the maps of all figures, with its heading; nothing where no figure has a map.

    Maps that are chosen alike are the same: the first figure's counts.
    """
    owner: dict[tuple[tuple[str, str], ...], tuple[Attention, int]] = {}
    for number, figure in enumerate(figures):
        for each in figure.maps:
            owner.setdefault((*each.choices.items(),), (each, number))
    place = {key: number for number, key in enumerate(owner)}
    first = {figure.path: place[(*figure.maps[0].choices.items(),)] for figure in figures if figure.maps}
    said = [{"caption": figure.caption, "choose": figure.choose} for figure in figures]
    return [Heading(TITLE), Paragraph(INTRODUCTION), _explorer(said, [*owner.values()], first)] if owner else []


def explorer_of(maps: Sequence[Attention]) -> Explorer:
    """The explorer of maps that belong to no figure."""
    return _explorer([{"choose": Explored.choose}], [(each, 0) for each in maps], {})


def _explorer(
    figures: Sequence[Mapping[str, str]], maps: Sequence[tuple[Attention, int]], first: Mapping[Path, int]
) -> Explorer:
    """The explorer of maps, each with the number of its figure."""
    pictures = list(dict.fromkeys(each.picture for each, _ in maps if each.picture is not None))
    data = [_as_data(each, pictures) | {"figure": of} for each, of in maps]
    return Explorer({"figures": figures, "maps": data}, pictures, first)


def _as_data(each: Attention, pictures: Sequence[Path]) -> dict[str, Any]:
    """For the page's script: weights as whole per cents."""
    wholes = [(max(row) if each.of_largest else 1.0) or 1.0 for row in each.weights]
    return {
        "choices": dict(each.choices), "rows": [*each.rows], "columns": [*each.columns],
        "weights": [
            [round(100 * weight / whole) for weight in row] for row, whole in zip(each.weights, wholes, strict=True)
        ],
        "ofLargest": each.of_largest, "picture": None if each.picture is None else pictures.index(each.picture),
        "across": each.across, "gold": [*map(list, each.gold)],
    }  # fmt: skip
