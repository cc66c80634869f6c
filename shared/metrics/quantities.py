"""What a named quantity is: a function of sums of a few additive numbers that every test example has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Example = Mapping[str, Any]
Statistics = Callable[[Example], Sequence[float] | None]
Corpus = Callable[[Array], Array]
Direction = Literal["higher", "lower", None]


@dataclass(frozen=True)
class Measure:
    """A named quantity.

    Attributes:
        title: column heading, with the unit or token it is per.
        unit: of the value and of differences, as printed after a number ("" for a share).
        digits: after the decimal point.
        statistics: an example's additive numbers (C,), or None where the example has none (counts as zeros).
            None for a measure that is only known per run (read from metrics.json).
        corpus: sums (..., C) to values (...); not a number where the sums are empty.
        most: the largest value there is; the least is 0, or of an effect, which may go either way, its opposite.
        theme: what it judges: the task's "score", an "alignment", or "attention" itself; reports group by it.
        better: whether higher or lower values are better; None where neither is, as of a chance level.
        step: the metric of the same run that says in which steps this one moves, if it is found on a grid.
    """

    title: str
    unit: str = ""
    digits: int = 3
    statistics: Statistics | None = None
    corpus: Corpus | None = None
    most: float = math.inf
    theme: str = "score"
    better: Direction = None
    step: str | None = None

    def of(self, examples: Sequence[Example]) -> float | None:
        """The corpus value over all examples that have statistics; None where none has, or no example could."""
        rows = [] if self.statistics is None else [self.statistics(example) for example in examples]
        carried = [row for row in rows if row is not None]
        return float(self.corpus(np.sum(carried, axis=0))) if carried and self.corpus is not None else None


def ratio(sums: Array) -> Array:
    """Ratio of two sums: (..., 2) to (...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def percentage(sums: Array) -> Array:
    """Ratio of two sums, per cent: (..., 2) to (...)."""
    return 100 * ratio(sums)


def perplexity(sums: Array) -> Array:
    """exp(mean negative log-likelihood) from summed nats and tokens: (..., 2) to (...)."""
    return np.asarray(np.exp(ratio(sums)))


def share_of_any(sums: Array) -> Array:
    """Share of a count, (..., 2) to (...); 0 where there is nothing to count, as a model may say nothing."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))


def bits(sums: Array) -> Array:
    """From summed nats and units (..., 2) to bits per unit (...)."""
    return np.asarray(ratio(sums) / np.log(2))


def field(name: str) -> Statistics:
    """The list of numbers that an example has under ``name``."""
    return lambda example: example.get(name)


def mean(name: str, within: str | None = None) -> Statistics:
    """The number ``name`` of an example, or of its entry ``within``, and 1: every example that has it counts alike."""

    def statistics(example: Example) -> Sequence[float] | None:
        entry = example if within is None else example.get(within) or {}
        return (entry[name], 1.0) if name in entry else None

    return statistics


def entries(within: str, *names: str) -> Statistics:
    """The numbers of these names in an example's entry ``within``, if it has that entry."""

    def statistics(example: Example) -> Sequence[float] | None:
        entry = example.get(within)
        return None if entry is None else [entry[name] for name in names]

    return statistics


def where_carried(statistics: Callable[[Example], Sequence[float] | None]) -> Statistics:
    """The same statistics, None where an example lacks an entry that they are of."""

    def carried(example: Example) -> Sequence[float] | None:
        try:
            return statistics(example)
        except KeyError:
            return None

    return carried


def share(
    title: str, statistics: Statistics, corpus: Corpus = ratio, better: Direction = "higher", theme: str = "score"
) -> Measure:
    """A measure from 0 to 1."""
    return Measure(title, "", 3, statistics, corpus, 1.0, theme, better)


def per_cent(
    title: str, statistics: Statistics, better: Direction = "higher", theme: str = "score", *, unit: str = "%",
    most: float = 100.0,
) -> Measure:  # fmt: skip
    """A measure that is the ratio of two sums, times 100."""
    return Measure(title, unit, 2, statistics, percentage, most, theme, better)
