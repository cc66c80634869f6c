"""Tables of studies: variants that train nothing and measure many numbers, such as operations of layers by size."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from shared.claims.results import RunResults
from shared.metrics.registry import known
from shared.reports.document import SPACE, Block, Paragraph, Table, Text, plain, typeset
from shared.reports.naming import called

Size = tuple[str, int]  # "at" or, of a dimension, "n", and its size
Rows = dict[str, dict[Size, float]]  # of every subject
_NAME = re.compile(r"(?P<subject>\w+)\.(?P<quantity>\w+?)(_(?P<letter>[a-z])(?P<size>\d+))?")
_AT = re.compile(r"(?P<subject>\w+)@(?P<size>\d+)")
_END = re.compile(r"_(low|high)$")  # of a band or an interval
WIDEST = 8  # sizes that a table has beside each other; more stand below each other


def is_study(run: RunResults) -> bool:
    """Whether none of the metrics of the run is a registered measure of a trained model."""
    return not any(known(name) for name in run.mean)


def taken_apart(name: str) -> tuple[str, str, Size | None] | None:
    """Subject, quantity and size of a metric; None where its name does not tell them.

    Names are ``<subject>.<quantity>_<letter><size>``: ``recurrent.path_n16`` is the path of the recurrent layer where n
    is 16. The size may be missing. ``speedup@16``, the speedup at 16, is a quantity ``number``.
    """
    if at := _AT.fullmatch(name):
        return at["subject"], "number", ("at", int(at["size"]))
    if found := _NAME.fullmatch(name):
        return found["subject"], found["quantity"], _size(found)
    return None


def _size(found: re.Match[str]) -> Size | None:
    return (found["letter"], int(found["size"])) if found["letter"] else None


def study(run: RunResults) -> list[Block]:
    """A table for each quantity by size, with a row per subject; and tables of the quantities without size.

    ``<quantity>_low`` and ``<quantity>_high``, the ends of an interval, stand behind the quantity in brackets if it has
    no size; those of quantities by size are left to figures. All other numbers come last.
    """
    parts = {name: found for name in run.mean if (found := taken_apart(name)) is not None}
    quantities = {quantity for _, quantity, _ in parts.values()}
    sized: dict[str, Rows] = defaultdict(lambda: defaultdict(dict))
    alone: dict[str, dict[str, Text]] = defaultdict(dict)
    for name, (subject, quantity, size) in parts.items():
        if _END.sub("", quantity) in quantities - {quantity}:
            continue
        if size is None:
            alone[quantity][subject] = _with_ends(name, run.mean)
        else:
            sized[quantity][subject][size] = run.mean[name]
    others: list[list[Text]] = [[_title(name), number(value)] for name, value in run.mean.items() if name not in parts]
    blocks: list[Block] = [Paragraph(("Measurements of ", *called(run.variant), "; nothing is trained:"))]
    blocks += [_by_size(quantity, rows) for quantity, rows in sized.items()]
    blocks += _without_size(alone)
    return [*blocks, *([Table(("Number", "Value"), others, "lr")] if others else [])]


def _by_size(quantity: str, rows: Rows) -> Table:
    sizes = sorted({size for row in rows.values() for size in row})
    titles = [f"at {size}" if letter == "at" else f"{letter} = {size}" for letter, size in sizes]
    if len(sizes) <= WIDEST:
        cells = {subject: [number(row.get(size)) for size in sizes] for subject, row in rows.items()}
        return _table((_title(quantity), *titles), cells)
    by_size = {
        title: [number(row.get(size)) for row in rows.values()] for title, size in zip(titles, sizes, strict=True)
    }
    return _table((_title(quantity), *map(_spoken, rows)), by_size)


def _without_size(quantities: Mapping[str, Mapping[str, Text]]) -> list[Table]:
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for quantity, cells in quantities.items():
        together[tuple(cells)].append(quantity)
    return [
        _table(("", *map(_title, names)), {s: [quantities[name][s] for name in names] for s in subjects})
        for subjects, names in together.items()
    ]


def _table(columns: tuple[str, ...], rows: Mapping[str, Sequence[Text]]) -> Table:
    body: list[list[Text]] = [[_spoken(head), *cells] for head, cells in rows.items()]
    return Table(columns, body, "l" + "r" * (len(columns) - 1))


def _with_ends(name: str, metrics: Mapping[str, float]) -> str:
    ends = [number(metrics[end]) for end in (f"{name}_low", f"{name}_high") if end in metrics]
    return f"{number(metrics[name])} [{f',{SPACE}'.join(ends)}]" if ends else number(metrics[name])


def number(value: float | None) -> str:
    """Format a number that is not a registered measure: counts below 10⁹ in full, others to four digits, below 1 or
    with a power of ten to three.
    """
    if value and not 1e-4 <= abs(value) < 1e9:
        return typeset(f"{value:.2e}")
    if not value or float(value).is_integer():
        return plain(value, 0)
    magnitude = math.floor(math.log10(abs(value)))
    return plain(value, max(0, 3 - magnitude) if magnitude >= 0 else 2 - magnitude)


def _title(name: str) -> str:
    spoken = _spoken(name)
    return f"{spoken[0].upper()}{spoken[1:]}"


def _spoken(name: str) -> str:
    return name.replace("_", " ").replace("mse", "MSE")
