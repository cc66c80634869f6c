"""What lies on a line: the curves of training, and what studies, variants that train nothing, measured by size."""

from __future__ import annotations

import csv
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shared.claims.results import RunResults, read_curve, read_recorded
from shared.errors import ReplicationError
from shared.reports.document import SPREAD, Figure, extremes, slug
from shared.reports.exhibits import LINES, Exhibit, OfPanels, Results, panels
from shared.reports.figures import drawing, legend_above, line_style, panels_drawn, place_ticks, plain_powers, plot_line
from shared.reports.naming import name_of, styles_of, token_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Runs = Sequence[RunResults]
Points = dict[float, list[float]]
"""Value of x to the values of the seeds at that x."""
Apart = Sequence[tuple[dict[int, float], bool]]
"""For every seed: update to value, and whether the run diverged before its planned end."""
DIVERGED = "the gradient was not finite"
"""The beginning of ``stopped_because`` in the record of a run that diverged."""
FAR_APART = 30  # how many times a loss may exceed another before both are drawn on a logarithmic axis
EARLY = " A variant with crosses has a line for each seed: at a cross its training ended before its time."
Size = tuple[str, int]  # "at" or, of a dimension, "n", and its size
Line = list[list[float]]
"""Sizes ascending, values there, lower and upper ends of their band."""
_NAME = re.compile(r"(?P<subject>\w+)\.(?P<quantity>\w+?)(_(?P<letter>[a-z])(?P<size>\d+))?")
_AT = re.compile(r"(?P<subject>\w+)@(?P<size>\d+)")
NAMED = 6  # ticks of a panel whose sizes have room beside each other; of one alone twice as many


def read_curves(run: RunResults, *, metric: str, split: str) -> Points:
    """Update to the recorded values there, one per seed that has one; empty if there are no curves.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    points: Points = defaultdict(list)
    for seed in run.seeds:
        for step, value in read_curve(run.curve(seed), metric=metric, split=split).items():
            points[step].append(value)
    return dict(points)


def read_apart(run: RunResults, *, metric: str, split: str) -> Apart:
    """The curve of every seed, and whether the run diverged; empty if no run diverged.

    Runs that stop because validation no longer improves end as planned; runs with a gradient that is not finite do not.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    seeds = [
        (curve, record["stopped_because"].startswith(DIVERGED))
        for seed, record in run.runs.items()
        if (curve := read_curve(run.curve(seed), metric=metric, split=split))
    ]
    return seeds if any(ended for _, ended in seeds) else []


def write_curves(results: Results, path: Path) -> None:
    """Write what validation recorded in every training, ``variant,seed,update,metric,value``, to six digits, sorted.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    rows = sorted(
        (run.variant, seed, step, metric, f"{value:.6g}")
        for run in results.values()
        for seed in (run.seeds if not run.members else ())
        for (metric, split), curve in read_recorded(run.curve(seed)).items()
        for step, value in (curve.items() if split == "valid" else ())
    )
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([("variant", "seed", "update", "metric", "value"), *rows])


@dataclass(frozen=True)
class Curve:
    """A quantity that is recorded on the validation split.

    Attributes:
        metric: its name in curve.csv.
        caption: what is drawn.
        label: of the axis, with the unit; ``{token}`` stands for what the variants call their token.
    """

    metric: str
    caption: str
    label: str


LOSS = Curve("loss", "Loss on the validation split against updates", "Validation loss (nats per {token})")
ERROR_LABEL = "Validation error (share of {token}s)"


@dataclass(frozen=True)
class LearningCurves(OfPanels):
    """Figures ``training_<metric>_<panel>.png`` of what was recorded in training, of those panels that have a curve.

    Attributes:
        panels: as of the base.
        curves: what is drawn.
        diverging: whether training may end before its time, see :func:`training_curves`.
        only: the end of the files' names where a report has several such exhibits; then no others than the panels are
            shown. Without one a task that none of their variants is of is shown whole.
    """

    curves: Sequence[Curve] = (LOSS,)
    diverging: bool = False
    only: str = ""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel and quantity."""
        figures: list[Figure] = []
        end = f"_{self.only}" if self.only else ""
        for panel in panels(results, self.panels, others=not self.only):
            for curve in self.curves:
                path = folder / f"training_{curve.metric}_{panel.name}{end}.png"
                label, diverging = curve.label.format(token=token_of(panel.runs)), self.diverging
                found = training_curves(panel.runs, path, metric=curve.metric, label=label, diverging=diverging)
                if found:
                    apart = (read_apart(run, metric=curve.metric, split="valid") for run in panel.runs)
                    early = EARLY if diverging and any(apart) else ""
                    said = ends("At the end of training", panel.runs, found)
                    figures.append(Figure(path, f"{said}{panel.title}. {curve.caption}: {SPREAD}{early}"))
        return figures


def ends(what: str, runs: Runs, curves: Sequence[Points]) -> str:
    """Which curve ends lowest and which highest, mean over seeds, as a sentence with a space after it."""
    pairs = zip(runs, curves, strict=True)
    return extremes(what, {name_of(run.variant): statistics.fmean(of[max(of)]) for run, of in pairs if of})


def training_curves(
    runs: Runs, path: Path, *, metric: str, label: str, split: str = "valid", diverging: bool = False
) -> list[Points]:
    """Draw a recorded value against updates: mean over seeds, shaded from the lowest to the highest seed.

    Args:
        runs: the variants.
        path: of the PNG.
        metric: what was recorded.
        label: of the axis, with the unit.
        split: of what.
        diverging: whether a training may have ended before its time: then the variant's seeds are drawn apart, a cross
            where one ended; and a loss that is far greater somewhere than elsewhere is on a logarithmic scale.

    Returns:
        the curves; none where no run had recorded it, and nothing is drawn.
    """
    curves = [read_curves(run, metric=metric, split=split) for run in runs]
    apart = [read_apart(run, metric=metric, split=split) for run in runs] if diverging else ()
    values = [value for points in curves for seeds in points.values() for value in seeds]
    wide = diverging and metric == "loss" and 0.0 < FAR_APART * min(values, default=0.0) < max(values)
    return curves if draw_curves(runs, curves, path, x="Updates", y=label, log_y=wide, apart=apart) else []


def draw_curves(
    runs: Runs, curves: Sequence[Points], path: Path, *, x: str, y: str, marked: bool = False, powers: bool = False,
    log_y: bool = False, apart: Sequence[Apart] = (),
) -> bool:  # fmt: skip
    """Draw one curve per variant: mean over its seeds, shaded from the lowest to the highest seed.

    Args:
        runs: the variants.
        curves: theirs; empty for one that is not drawn.
        path: of the PNG.
        x: label, with the unit.
        y: label, with the unit.
        marked: whether each point is marked and named on the axis, as where there are few.
        powers: whether x is then drawn on a logarithmic scale; it may be 0.
        log_y: whether y is drawn on a logarithmic scale.
        apart: of each variant, the seeds that are drawn as lines of their own instead; none where it is as above.

    Returns:
        whether there was any curve; if not, nothing is drawn.
    """
    if not any(curves):
        return False
    from matplotlib.ticker import MaxNLocator

    with drawing(path, height=3.7) as canvas:
        axes = canvas.subplots()
        plot_curves(axes, runs, curves, marked=marked, apart=apart)
        axes.set(xlabel=x, ylabel=y)
        axes.margins(x=0.01)
        if log_y:
            axes.set_yscale("log")
            plain_powers(axes.yaxis)
        if marked:
            place_ticks(axes, sorted({place for points in curves for place in points}), log=powers)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        legend_above(canvas, axes)
    return True


def plot_curves(
    axes: Axes, runs: Runs, curves: Sequence[Points], *, marked: bool = False, apart: Sequence[Apart] = ()
) -> None:
    """Plot what :func:`draw_curves` draws, into ``axes``; the variants keep their colours if some have no curve."""
    for place, style in enumerate(styles_of([name_of(run.variant) for run in runs])):
        name, points, line = name_of(runs[place].variant), curves[place], line_style(style)
        seeds = apart[place] if apart else ()
        for seed, (curve, ended) in enumerate(seeds):
            axes.plot(list(curve), list(curve.values()), label="" if seed else name, linewidth=1.1, **line)
            if ended:
                axes.plot(*[*curve.items()][-1], "X", color=line["color"], markersize=8)
        if points and not seeds:
            at = sorted(points)
            mean, low, high = ([float(of(points[x])) for x in at] for of in (np.mean, min, max))
            plot_line(axes, style, len(runs), (at, mean, low, high), label=name, marked=marked)


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


@dataclass(frozen=True)
class StudyPanel:
    """A quantity that a study measured of several subjects, drawn against a size: a panel of a figure.

    Its band goes from ``<quantity>_low`` to ``<quantity>_high``, where these were measured, else from seed to seed.

    Attributes:
        variant: the study.
        quantity: of its metrics ``<subject>.<quantity>_<letter><size>``.
        x: label of the sizes, with their unit.
        y: label of the quantity, with its unit.
        subjects: those drawn, to how the legend names them; a label has one colour in all panels.
        log_x: whether the sizes lie on a logarithmic scale, as the quantity does; 0 may be among them.
    """

    variant: str
    quantity: str
    x: str
    y: str
    subjects: Mapping[str, str]
    log_x: bool = True

    def lines(self, results: Results) -> dict[str, Line]:
        """Label to line, of the subjects that were measured: means over seeds, of the ends of the bands too.

        Raises:
            ReplicationError: the sizes of one subject are of several dimensions.
        """
        if (run := results.get(self.variant)) is None:
            return {}
        lines = {}
        for subject, label in self.subjects.items():
            seeds, low, high = (by_size(run, subject, self.quantity + end) for end in ("", "_low", "_high"))
            if sizes := sorted(seeds):
                lines[label] = [
                    sizes,
                    [statistics.fmean(seeds[size]) for size in sizes],
                    [statistics.fmean(low.get(size) or [min(seeds[size])]) for size in sizes],
                    [statistics.fmean(high.get(size) or [max(seeds[size])]) for size in sizes],
                ]
        return lines


def by_size(run: RunResults, subject: str, quantity: str) -> Points:
    """Size to the values of all seeds, of what :func:`parse_name` takes for a quantity of a subject."""
    points: dict[float, list[float]] = defaultdict(list)
    dimensions = set()
    for name, value in (item for metrics in run.metrics.values() for item in metrics.items()):
        match parse_name(name):
            case (of, what, (dimension, size)) if (of, what) == (subject, quantity):
                dimensions.add(dimension)
                points[size].append(value)
    if len(dimensions) > 1:
        raise ReplicationError(
            f"{run.variant} measured {subject}.{quantity} by several dimensions ({', '.join(sorted(dimensions))}), "
            "which one line cannot show; give the quantities different names."
        )
    return points


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

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if anything was measured.

        Raises:
            ReplicationError: it has too many labels; or see :meth:`StudyPanel.lines`.
        """
        if len(self.labels) > LINES:
            raise ReplicationError(f"'{self.title}' has more than {LINES} lines; choose fewer in report.py.")
        measured = [(panel, lines) for panel in self.panels if (lines := panel.lines(results))]
        if not measured:
            return ()
        path, alone = folder / f"study_{slug(self.title)}.png", len(measured) == 1
        with panels_drawn(path, len(measured), height=3.3 if alone else 2.8, extra=0.4) as (canvas, grid):
            for axes, (panel, lines) in zip(grid, measured, strict=True):
                for style, label in zip(styles_of(self.labels), self.labels, strict=True):
                    if label in lines:
                        plot_line(axes, style, len(lines), lines[label], label=label, marked=True)
                if any(value > 0.0 for _, values, *_ in lines.values() for value in values):
                    axes.set_yscale("log")
                    plain_powers(axes.yaxis)
                places = sorted({size for sizes, *_ in lines.values() for size in sizes})
                place_ticks(axes, places, log=panel.log_x, named=2 * NAMED if alone else NAMED)
                axes.set(xlabel=panel.x, ylabel=panel.y)
            legend_above(canvas, *grid)
        said = (extremes(f"{p.y}, at the right", {k: line[1][-1] for k, line in of.items()}) for p, of in measured)
        return [Figure(path, f"{''.join(said)}{self.title.rstrip('.')}.")]
