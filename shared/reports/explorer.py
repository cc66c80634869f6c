"""Attention as data, which a reader explores on the page word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from shared.reports.document import Figure


@dataclass(frozen=True)
class Attention:
    """Weights that words, or rows of a matrix, give to words, or to the places of a picture.

    Attributes:
        choices: what a reader chooses it by, such as ``Sentence`` to ``2``, ``Head`` to ``layer 1, head 3``.
        rows: what attends.
        columns: what is attended to; of a picture nothing, for its places have no names.
        weights: (rows, columns), from 0 to 1; of a picture its places line by line.
        of_largest: whether weights are shown relative to the largest of their row, as where all are small.
        picture: whose places are attended to.
        across: places in a line of the picture.
    """

    choices: Mapping[str, str]
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Sequence[Sequence[float]]
    of_largest: bool = False
    picture: Path | None = None
    across: int = 0


@dataclass(frozen=True)
class Explorer(Figure):
    """A figure of attention in which a reader chooses a word and sees what it attends to.

    Markdown, and HTML where there are no scripts, show the picture.

    Attributes:
        maps: what can be chosen.
        choose: what a reader is asked to do.
    """

    maps: Sequence[Attention] = ()
    choose: str = "Choose a word:"
    kind: ClassVar[str] = "explorer"

    @property
    def pictures(self) -> list[Path]:
        """Those that words attend to, each once."""
        return list(dict.fromkeys(each.picture for each in self.maps if each.picture is not None))

    def as_data(self) -> dict[str, Any]:
        """For the page's script: weights as whole per cents."""
        return {
            "maps": [
                {
                    "choices": dict(each.choices), "rows": [*each.rows], "columns": [*each.columns],
                    "weights": [_per_cents(row, each.of_largest) for row in each.weights],
                    "ofLargest": each.of_largest,
                    "picture": None if each.picture is None else self.pictures.index(each.picture),
                    "across": each.across,
                }
                for each in self.maps
            ]
        }  # fmt: skip


def _per_cents(weights: Sequence[float], of_largest: bool) -> list[int]:
    whole = max(weights) if of_largest else 1.0
    return [round(100 * weight / (whole or 1.0)) for weight in weights]
