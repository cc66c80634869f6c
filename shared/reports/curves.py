"""The curves of training: read back, gathered in one file, and drawn."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shared.claims.results import RunResults, read_curve
from shared.errors import ReplicationError
from shared.reports.document import SPREAD, Figure
from shared.reports.exhibits import OfPanels, Results, choose_panels, panels
from shared.reports.figures import drawing, legend_above, line_style, place_ticks, plain_powers, plot_line
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


def read_mean(run: RunResults) -> Points:
    """Update to the mean over the seeds of the loss on validation, which git keeps where it does not keep every seed's.

    Raises:
        ReplicationError: the file has other columns than update and valid_loss.
    """
    path = run.folder / "curve.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames != ["update", "valid_loss"]:
            raise ReplicationError(f"{path} is not a mean curve (update,valid_loss); train again.")
        return {float(row["update"]): [float(row["valid_loss"])] for row in rows}


def write_curves(results: Results, path: Path) -> None:
    """Write what validation recorded in every training, ``variant,seed,update,metric,value``, to six digits, sorted.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    rows = sorted(
        (run.variant, seed, step, metric, f"{value:.6g}")
        for run in results.values()
        if not run.members
        for seed in run.seeds
        for metric in _validated(run.curve(seed))
        for step, value in read_curve(run.curve(seed), metric=metric, split="valid").items()
    )
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([("variant", "seed", "update", "metric", "value"), *rows])


def _validated(path: Path) -> set[str]:
    """What is recorded of the validation split."""
    if not path.exists():
        return set()
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["metric"] for row in csv.DictReader(lines) if row.get("split") == "valid"}


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
        for panel in (choose_panels if self.only else panels)(results, self.panels):
            for curve in self.curves:
                path = folder / f"training_{curve.metric}_{panel.name}{end}.png"
                label = curve.label.format(token=token_of(panel.runs))
                if training_curves(panel.runs, path, metric=curve.metric, label=label, diverging=self.diverging):
                    apart = (read_apart(run, metric=curve.metric, split="valid") for run in panel.runs)
                    early = EARLY if self.diverging and any(apart) else ""
                    figures.append(Figure(path, f"{panel.title}. {curve.caption}: {SPREAD}{early}"))
        return figures


def training_curves(
    runs: Runs, path: Path, *, metric: str, label: str, split: str = "valid", diverging: bool = False
) -> bool:
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
        whether any run had recorded it; if none had, nothing is drawn.
    """
    curves = [read_curves(run, metric=metric, split=split) for run in runs]
    apart = [read_apart(run, metric=metric, split=split) for run in runs] if diverging else ()
    values = [value for points in curves for seeds in points.values() for value in seeds]
    wide = diverging and metric == "loss" and 0.0 < FAR_APART * min(values, default=0.0) < max(values)
    return draw_curves(runs, curves, path, x="Updates", y=label, log_y=wide, apart=apart)


def draw_curves(
    runs: Runs, curves: Sequence[Points], path: Path, *, x: str, y: str, powers: bool = False, marked: bool = False,
    log_y: bool = False, apart: Sequence[Apart] = (),
) -> bool:  # fmt: skip
    """Draw one curve per variant: mean over its seeds, shaded from the lowest to the highest seed.

    Args:
        runs: the variants.
        curves: theirs; empty for one that is not drawn.
        path: of the PNG.
        x: label, with the unit.
        y: label, with the unit.
        powers: whether x is drawn on a logarithmic scale.
        marked: whether each point is marked and named on the axis, as where there are few; x may then be 0.
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
        elif powers:
            axes.set_xscale("log")
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
        for number, (curve, ended) in enumerate(seeds):
            axes.plot(list(curve), list(curve.values()), label="" if number else name, linewidth=1.1, **line)
            if ended:
                axes.plot(*[*curve.items()][-1], "X", color=line["color"], markersize=8)
        if points and not seeds:
            at = sorted(points)
            mean, low, high = ([float(of(points[x])) for x in at] for of in (np.mean, min, max))
            plot_line(axes, style, len(runs), (at, mean, low, high), label=name, marked=marked)
