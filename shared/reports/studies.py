"""Studies: variants that train nothing but measure many numbers, such as the operations of layers by their size."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping

from shared.claims.measures import known
from shared.claims.results import RunResults
from shared.reports.document import Block, Code, Paragraph, Table, Text, plain

Size = tuple[str, int]  # "at" or, of a dimension, "n =", and its size; ("", 0) where a number has none
_NAME = re.compile(r"(?P<subject>\w+)\.(?P<quantity>\w+?)(_(?P<letter>[a-z])(?P<size>\d+))?")
_AT = re.compile(r"(?P<subject>\w+)@(?P<size>\d+)")


def is_study(run: RunResults) -> bool:
    """Whether none of its numbers is a measure of what a trained model does."""
    return not any(known(name) for name in run.mean)


def study(run: RunResults) -> list[Block]:
    """A table for every quantity: a row per subject, a column per size; and one of all other numbers.

    Names are taken apart as ``<subject>.<quantity>_<letter><size>``: ``recurrent.path_n16`` is the path of the
    recurrent layer where n is 16. The size may be missing. ``speedup@16`` is the speedup at 16.
    """
    quantities: dict[str, dict[str, dict[Size, float]]] = defaultdict(lambda: defaultdict(dict))
    others: list[list[Text]] = []
    for name, value in run.mean.items():
        found = _NAME.fullmatch(name)
        if at := _AT.fullmatch(name):
            quantities["number"][_spoken(at["subject"])]["at", int(at["size"])] = value
        elif found is None:
            others.append([_spoken(name).capitalize(), number(value)])
        else:
            size = (f"{found['letter']} =", int(found["size"])) if found["letter"] else ("", 0)
            quantities[found["quantity"]][_spoken(found["subject"])][size] = value
    blocks: list[Block] = [Paragraph((Code(run.variant), ", which trains nothing:"))]
    blocks += [_by_size(_spoken(quantity), rows) for quantity, rows in quantities.items()]
    return [*blocks, *([Table(("Number", "Value"), others, "lr")] if others else [])]


def _by_size(quantity: str, rows: Mapping[str, Mapping[Size, float]]) -> Table:
    sizes = sorted({size for row in rows.values() for size in row})
    titles = [f"{dimension} {size}" if dimension else "" for dimension, size in sizes]
    body: list[list[Text]] = [
        [subject, *(number(row.get(size)) for size in sizes)] for subject, row in rows.items()
    ]
    return Table((quantity.capitalize(), *titles), body, "l" + "r" * len(sizes))


def number(value: float | None) -> str:
    """What is no measure: counts are written out up to a thousand million, small values to three digits."""
    whole = value is not None and abs(value) < 1e9 and float(value).is_integer()
    small = 0 if whole or not value else max(0, -math.floor(math.log10(abs(value))) - 1)
    return plain(value, 0 if whole else 3 + small)


def _spoken(name: str) -> str:
    return name.replace("_", " ")
