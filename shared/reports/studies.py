"""Studies, variants that train nothing and measure many numbers, such as operations of layers by size: as tables and
as lines of a figure.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.metrics.registry import known
from shared.reports.document import Block, Figure, Paragraph, Table, number, slug, with_ends
from shared.reports.exhibits import LINES, Exhibit, Results
from shared.reports.figures import legend_above, panels_drawn, place_ticks, plain_powers, plot_line
from shared.reports.naming import name_and_code, styles_of

Size = tuple[str, int]  # "at" or, of a dimension, "n", and its size
Line = tuple[list[float], list[float], list[float], list[float]]
"""Sizes ascending, values there, lower and upper ends of their band."""
_NAME = re.compile(r"(?P<subject>\w+)\.(?P<quantity>\w+?)(_(?P<letter>[a-z])(?P<size>\d+))?")
_AT = re.compile(r"(?P<subject>\w+)@(?P<size>\d+)")
_END = re.compile(r"_(low|high)$")  # of a band or an interval
WIDEST = 8  # sizes that a table has beside each other; more stand below each other
NAMED = 6  # ticks of a panel whose sizes have room beside each other; of one alone twice as many


def is_study(run: RunResults) -> bool:
    """Whether none of the metrics of the run is a registered measure of a trained model."""
    return not any(known(name) for name in run.mean)


def parse_name(name: str) -> tuple[str, str, Size | None] | None:
    """Subject, quantity and size of a metric; None where its name does not tell them.

    Names are ``<subject>.<quantity>_<letter><size>``: ``recurrent.path_n16`` is the path of the recurrent layer where n
    is 16. The size may be missing. ``speedup@16``, the speedup at 16, is a quantity ``number``.
    """
    if at := _AT.fullmatch(name):
        return at["subject"], "number", ("at", int(at["size"]))
    if found := _NAME.fullmatch(name):
        size = (found["letter"], int(found["size"])) if found["letter"] else None
        return found["subject"], found["quantity"], size
    return None


def study_tables(run: RunResults) -> list[Block]:
    """A table for each quantity by size, with a row per subject; and tables of the quantities without size.

    ``<quantity>_low`` and ``<quantity>_high``, the ends of an interval, stand behind the quantity in brackets if it has
    no size; those of quantities by size are left to figures. All other numbers come last.
    """
    parsed = {name: found for name in run.mean if (found := parse_name(name)) is not None}
    quantities = {quantity for _, quantity, _ in parsed.values()}
    sized: dict[str, dict[str, dict[Size, str]]] = defaultdict(lambda: defaultdict(dict))
    alone: dict[str, dict[str, str]] = defaultdict(dict)
    for name, (subject, quantity, size) in parsed.items():
        if _END.sub("", quantity) in quantities - {quantity}:
            continue
        if size is None:
            ends = [number(run.mean[end]) for end in (f"{name}_low", f"{name}_high") if end in run.mean]
            value = number(run.mean[name])
            alone[quantity][subject] = with_ends(value, ends) if ends else value
        else:
            sized[quantity][subject][size] = number(run.mean[name])
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for quantity, cells in alone.items():
        together[tuple(cells)].append(quantity)
    others = [[_title(name), number(value)] for name, value in run.mean.items() if name not in parsed]
    return [
        Paragraph(f"Measurements of {name_and_code(run.variant)}; nothing is trained:"),
        *(_by_size(quantity, rows) for quantity, rows in sized.items()),
        *(
            Table(["", *map(_title, names)], [[_spoken(s), *(alone[name][s] for name in names)] for s in subjects])
            for subjects, names in together.items()
        ),
        *([Table(("Number", "Value"), others)] if others else []),
    ]


def _by_size(quantity: str, rows: Mapping[str, Mapping[Size, str]]) -> Table:
    sizes = sorted({size for row in rows.values() for size in row})
    titles = [f"at {size}" if letter == "at" else f"{letter} = {size}" for letter, size in sizes]
    cells = [[row.get(size, "–") for size in sizes] for row in rows.values()]
    heads, subjects = titles, [_spoken(subject) for subject in rows]
    if len(sizes) > WIDEST:
        heads, subjects, cells = subjects, titles, [list(column) for column in zip(*cells, strict=True)]
    body = [[head, *row] for head, row in zip(subjects, cells, strict=True)]
    return Table((_title(quantity), *heads), body)


def _title(name: str) -> str:
    spoken = _spoken(name)
    return f"{spoken[0].upper()}{spoken[1:]}"


def _spoken(name: str) -> str:
    return name.replace("_", " ").replace("mse", "MSE")


@dataclass(frozen=True)
class StudyPanel:
    """A quantity that a study measured of several subjects, drawn against a size: a panel of a figure.

    Attributes:
        variant: the study.
        quantity: of its metrics ``<subject>.<quantity>_<letter><size>``.
        x: label of the sizes, with their unit.
        y: label of the quantity, with its unit.
        subjects: those drawn, to how the legend names them; a label has one colour in all panels.
        log_x: whether the sizes lie on a logarithmic scale; 0 may be among them.
        log_y: whether the quantity does.
        low: the quantity that is the lower end of the band; without one it is the lowest seed.
        high: likewise the upper end.
    """

    variant: str
    quantity: str
    x: str
    y: str
    subjects: Mapping[str, str]
    log_x: bool = True
    log_y: bool = True
    low: str | None = None
    high: str | None = None

    def lines(self, results: Results) -> dict[str, Line]:
        """Label to line, of the subjects that were measured: means over seeds, of the ends of the bands too.

        Raises:
            ReplicationError: the sizes of one subject are of several dimensions.
        """
        run = results.get(self.variant)
        lines = {}
        for subject, label in self.subjects.items() if run is not None else ():
            assert run is not None, "there is nothing to draw of a study that was not made"
            seeds = _by_place(run, subject, self.quantity)
            low, high = ({size: end(of) for size, of in seeds.items()} for end in (min, max))
            for ends, quantity in ((low, self.low), (high, self.high)):
                for size, of in _by_place(run, subject, quantity).items() if quantity else ():
                    ends[size] = statistics.fmean(of)
            if sizes := sorted(seeds):
                lines[label] = (
                    sizes, [statistics.fmean(seeds[size]) for size in sizes], [low[size] for size in sizes],
                    [high[size] for size in sizes],
                )  # fmt: skip
        return lines


def _by_place(run: RunResults, subject: str, quantity: str) -> dict[float, list[float]]:
    """Size to the values of all seeds."""
    points: dict[float, list[float]] = defaultdict(list)
    dimensions = set()
    for metrics in run.metrics.values():
        for name, value in metrics.items():
            parsed = parse_name(name)
            if parsed is not None and parsed[:2] == (subject, quantity) and parsed[2] is not None:
                dimensions.add(parsed[2][0])
                points[parsed[2][1]].append(value)
    if len(dimensions) > 1:
        raise ReplicationError(
            f"{run.variant} measured {subject}.{quantity} by several dimensions ({', '.join(sorted(dimensions))}), "
            "which one line cannot show; give the quantities different names."
        )
    return dict(points)


@dataclass(frozen=True)
class StudyLines(Exhibit):
    """A figure ``study_<title>.png`` of what studies measured, with a panel for each quantity that was.

    Attributes:
        title: what the caption begins with.
        panels: side by side; a label has one colour in all of them.
    """

    title: str
    panels: Sequence[StudyPanel]

    @property
    def labels(self) -> list[str]:
        """All lines that there may be."""
        return list(dict.fromkeys(label for panel in self.panels for label in panel.subjects.values()))

    def variants(self) -> Sequence[str]:
        """The studies."""
        return list(dict.fromkeys(panel.variant for panel in self.panels))

    def columns(self) -> Sequence[str]:
        """What is read of every subject: the quantities, and those that are ends of bands."""
        return [
            f"{panel.variant}: {subject}.{quantity}"
            for panel in self.panels
            for subject in panel.subjects
            for quantity in (panel.quantity, panel.low, panel.high)
            if quantity is not None
        ]

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if anything was measured.

        Raises:
            ReplicationError: it has too many labels; or see :meth:`StudyPanel.lines`.
        """
        if len(self.labels) > LINES:
            raise ReplicationError(
                f"'{self.title}' has more than {LINES} lines; choose fewer in the paper's report.py."
            )
        measured = [(panel, lines) for panel in self.panels if (lines := panel.lines(results))]
        if not measured:
            return ()
        path, alone = folder / f"study_{slug(self.title)}.png", len(measured) == 1
        with panels_drawn(path, len(measured), height=3.3 if alone else 2.8, extra=0.4) as (canvas, grid):
            for axes, (panel, lines) in zip(grid, measured, strict=True):
                for style, label in zip(styles_of(self.labels), self.labels, strict=True):
                    if label in lines:
                        plot_line(axes, style, len(lines), lines[label], label=label, marked=True)
                if panel.log_y and any(value > 0.0 for _, values, *_ in lines.values() for value in values):
                    axes.set_yscale("log")
                    plain_powers(axes.yaxis)
                places = sorted({size for sizes, *_ in lines.values() for size in sizes})
                place_ticks(axes, places, log=panel.log_x, named=2 * NAMED if alone else NAMED)
                axes.set(xlabel=panel.x, ylabel=panel.y)
            legend_above(canvas, *grid)
        return [Figure(path, f"{self.title.rstrip('.')}.")]
