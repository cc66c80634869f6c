"""What a memory of earlier segments is good for: loss against its length and by position, and what is recalled."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.claims.results import RunResults
from shared.metrics.quantities import Example
from shared.reports.curves import Points, draw_curves
from shared.reports.document import SPREAD, Block, Figure, Table, over_seeds
from shared.reports.exhibits import chosen_panels
from shared.reports.naming import called, name_of

Sums = dict[float, tuple[float, float]]
"""x to two sums over test examples, of which a value is the ratio."""

WIDEST = 7
"""Columns of means with their ranges that fit on a page beside the first one."""


@dataclass(frozen=True)
class MemoryFigure:
    """A kind of figure: one quantity of every variant against another, with its table.

    Attributes:
        name: what its files begin with.
        caption: what is drawn; ``{y}`` stands for the label of the values.
        x: label of the axis, with its unit.
        y: likewise, of the variants drawn.
        curve: of one variant.
        digits: after the decimal point, in the table.
        powers: whether x is drawn on a logarithmic scale.
    """

    name: str
    caption: str
    x: str
    y: Callable[[RunResults], str]
    curve: Callable[[RunResults], Points]
    digits: int
    powers: bool = True

    def blocks(
        self, results: Mapping[str, RunResults], folder: Path, chosen: Mapping[str, Sequence[str]]
    ) -> Iterator[Block]:
        """Draw ``<name>_<panel>.png`` into ``folder`` for every panel that has a curve, a table after each.

        Args:
            results: all variants.
            folder: where the PNGs go.
            chosen: title to the variants that share a figure, see :func:`shared.reports.exhibits.chosen_panels`.
        """
        for panel in chosen_panels(results, chosen):
            curves = {run.variant: points for run in panel.runs if (points := self.curve(run))}
            runs = [run for run in panel.runs if run.variant in curves]
            path, y = folder / f"{self.name}_{panel.name}.png", self.y(panel.runs[0])
            if draw_curves(runs, list(curves.values()), path, x=self.x, y=y, powers=self.powers, marked=True):
                yield Figure(path, f"{panel.title}. {self.caption.format(y=y)} {SPREAD}")
                yield _table(f"{y}, by {self.x[0].lower()}{self.x[1:]}", curves, self.digits)


def _table(head: str, curves: Mapping[str, Points], digits: int) -> Table:
    """A column for every place; or a row, where there are too many for the width of a page."""
    places = sorted({place for points in curves.values() for place in points})
    cells = [[over_seeds(points.get(place, ()), digits) for place in places] for points in curves.values()]
    names, titles = [called(variant) for variant in curves], [f"{place:g}" for place in places]
    if len(places) <= WIDEST:
        return Table((head, *titles), [[n, *row] for n, row in zip(names, cells, strict=True)], "l" + "r" * len(places))
    columns = [name_of(variant) for variant in curves]
    turned = [[title, *column] for title, *column in zip(titles, *cells, strict=True)]
    return Table((head, *columns), turned, "l" + "r" * len(columns))


def by_memory(run: RunResults) -> Points:
    """Length of the memory to the loss of each seed, of those examples that were scored at several lengths.

    The length that a variant is judged with is one of them.
    """

    def sums(seed: int, rows: Iterable[Example]) -> Sums:
        own = str(evaluation(run, seed)["reach"]["memory"])
        return _added(
            (float(memory), nats, row["units"])
            for row in rows
            if row.get("memories")
            for memory, nats in ({own: row["nll"]} | row["memories"]).items()
        )

    return _points(run, sums, _loss(run))


def by_position(run: RunResults) -> Points:
    """Part of the segment, from 1, to the loss of each seed on the symbols in it."""

    def sums(seed: int, rows: Iterable[Example]) -> Sums:
        return _added(
            (float(part), nats, count * row["units"] / row["tokens"])
            for row in rows
            for part, (nats, count) in enumerate(row.get("positions") or (), start=1)
        )

    return _points(run, sums, _loss(run))


def by_distance(run: RunResults) -> Points:
    """Distance (the end of its range) to the share, per cent, of what each seed recalls at it."""

    def sums(seed: int, rows: Iterable[Example]) -> Sums:
        return _added(
            (float(distance), 100.0 * found, count)
            for row in rows
            for distance, (_, count, found) in (row.get("recalls") or {}).items()
        )

    return _points(run, sums, lambda percent: percent)


def evaluation(run: RunResults, seed: int) -> Mapping[str, Any]:
    """The settings that a seed is judged with."""
    found: Mapping[str, Any] = run.runs[seed]["parameters"]["evaluation"]
    return found


def loss_label(run: RunResults) -> str:
    """What losses of a language model are drawn as: perplexity of words, bits of other units."""
    return f"{'Perplexity' if _of_words(run) else 'Bits'} per {run.token}"


def _of_words(run: RunResults) -> bool:
    return "word_perplexity" in run.mean


def _loss(run: RunResults) -> Callable[[float], float]:
    return math.exp if _of_words(run) else lambda nats: nats / math.log(2)


def _added(parts: Iterable[tuple[float, float, float]]) -> Sums:
    sums: dict[float, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for place, value, count in parts:
        sums[place] = (sums[place][0] + value, sums[place][1] + count)
    return sums


def _points(run: RunResults, sums: Callable[[int, Iterable[Example]], Sums], shown: Callable[[float], float]) -> Points:
    """Ratios of sums over the first test split, of every seed, as they are ``shown``."""
    points: Points = defaultdict(list)
    for seed, rows in run.examples.items():
        first = [row for row in rows if row["split"] == rows[0]["split"]]
        for place, (value, count) in sums(seed, first).items():
            if count:
                points[place].append(shown(value / count))
    return dict(points)


BY_MEMORY = MemoryFigure(
    "loss_by_memory",
    "{y} on the test split against the length of the memory that it is scored with:",
    "Memory (symbols of earlier segments)",
    loss_label,
    by_memory,
    3,
)
BY_POSITION = MemoryFigure(
    "loss_by_position",
    "{y} on the test split by the place that a symbol has in the segment it is scored in:",
    "Part of the segment (of eight, in reading order)",
    loss_label,
    by_position,
    3,
    powers=False,
)
BY_DISTANCE = MemoryFigure(
    "recall_by_distance",
    "Share of the repeated words of the test split that have a probability above one half, by how far back they were "
    "said (at each range's end):",
    "Distance (symbols)",
    lambda run: "Recalled (%)",
    by_distance,
    1,
)
