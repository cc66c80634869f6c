"""Figures of the reports: drawn without a display, the same bytes on every run, legible 700 pixels wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter
from PIL import Image

from shared.claims.results import RunResults
from shared.reports.curves import Apart, Points, read_apart, read_curves
from shared.reports.naming import name_of
from shared.reports.styles import PALETTE, styles_of

WIDTH = 7.0  # inches: 700 pixels at the 100 pixels per inch at which 10 points read as text
COLOURS = (*PALETTE.values(),)
VERDICTS = {
    "reproduced": "#009E73", "contradicted": "#D55E00", "inconclusive": "#8a6d00", "verified": "#0072B2",
    "refuted": "#D55E00", "not tested": "#666666",
}  # fmt: skip
INK = "#1b1f24"  # of words, as in style.css
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (3, 1, 1, 1, 1, 1)), ":", (0, (5, 1)), (0, (1, 1)))
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # which is as wide, for readers of an SVG who lack the first
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.6,
    "svg.fonttype": "none",  # text stays text, in the reader's own fonts
    "svg.hashsalt": "figure",  # ids are the same on every run
}
Runs = Sequence[RunResults]
DENSITY, SHADED_DENSITY = 200, 130  # pixels per inch, of lines and of photographs
SHADES = 256  # as many as a PNG's palette has; enough for lines and bands, at a third of the bytes
FAR_APART = 30  # how many times a loss may exceed another before both are drawn on a logarithmic axis
UNSAID = ("Creator", "Date", "Format", "Type")  # what an SVG says of itself, so that its bytes depend on nothing else
NEARLY_WHITE = 247  # the palette of photographs has it no whiter, for the ground to be white


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
    runs: Runs,
    curves: Sequence[Points],
    path: Path,
    *,
    x: str,
    y: str,
    powers: bool = False,
    marked: bool = False,
    log_y: bool = False,
    apart: Sequence[Apart] = (),
) -> bool:
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
    styles = styles_of([name_of(run.variant) for run in runs])
    for place, (run, index, points) in enumerate(zip(runs, styles, curves, strict=True)):
        seeds = apart[place] if apart else ()
        for number, (curve, ended) in enumerate(seeds):
            label = "" if number else name_of(run.variant)
            axes.plot(list(curve), list(curve.values()), label=label, linewidth=1.1, **_line(index))
            if ended:
                axes.plot(*[*curve.items()][-1], "X", color=COLOURS[index % len(COLOURS)], markersize=8)
        if seeds or not points:
            continue
        places = sorted(points)
        mean, low, high = ([float(of(points[place])) for place in places] for of in (np.mean, min, max))
        plot_line(axes, index, len(runs), (places, mean, low, high), label=name_of(run.variant), marked=marked)


def plot_line(
    axes: Axes, index: int, count: int, curve: Sequence[Sequence[float]], *, label: str, marked: bool
) -> None:
    """Plot one line of ``count`` in the style ``index``: places, values, lower and upper end of its band."""
    places, values, low, high = curve
    axes.fill_between(places, low, high, **_band(index, count))
    marker = MARKERS[_dash(index)] if marked else None
    axes.plot(places, values, label=label, **_line(index), marker=marker)


def plain_powers(axis: Axis) -> None:
    """Set the ticks of a logarithmic axis with given limits: plain numbers, except very large and very small ones."""
    least, most = axis.get_view_interval()
    if most < 4 * least:
        axis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if most < 1000 * least else (1.0,)))
    axis.set_major_formatter("{x:g}" if least > 1e-4 and most < 1e5 else LogFormatterSciNotation())
    axis.set_minor_formatter(NullFormatter())


def place_ticks(axes: Axes, places: Sequence[float], *, log: bool, named: int = 100) -> None:
    """Ticks at ``places`` only; a logarithmic axis is linear from 0 to the smallest positive of them.

    At most ``named`` of the ticks have labels; the last tick is one of these.
    """
    if log:
        least = min((place for place in places if place > 0.0), default=1.0)
        axes.set_xscale("symlog", linthresh=least, linscale=0.6)
    step = -(-len(places) // named)
    names = ["" if (len(places) - 1 - i) % step else f"{place:g}" for i, place in enumerate(places)]
    axes.set_xticks(places, names, minor=False)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.06)


def fitting(sizes: Sequence[int], symbols: int) -> int:
    """Index of the longest example of at most so many symbols; if all have more, of the shortest."""
    shortest = min(range(len(sizes)), key=sizes.__getitem__)
    return max((i for i, size in enumerate(sizes) if size <= symbols), key=sizes.__getitem__, default=shortest)


def _line(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[_dash(index)]}


def _dash(index: int) -> int:
    """Of the styles beyond the palette, which have the same colours again with other dashes and markers."""
    return (index + index // len(COLOURS)) % len(DASHES)


def _band(index: int, count: int) -> dict[str, Any]:
    """Style of a band; with more bands, each is more transparent, because bands overlap."""
    return {"color": COLOURS[index % len(COLOURS)], "alpha": min(0.16, 0.5 / count), "linewidth": 0}


def legend_above(canvas: Canvas, *panels: Axes) -> None:
    """Put the legend above the plots, where it hides nothing and takes no width; panels may share lines."""
    entries = [entry for axes in panels for entry in zip(*axes.get_legend_handles_labels(), strict=True)]
    labels = list(dict.fromkeys(label for _, label in entries))
    handles = [next(line for line, label in entries if label == name) for name in labels]
    columns = max(1, min(3, len(labels), 90 // (6 + max(len(label) for label in labels))))  # letters that fit
    canvas.set_figheight(canvas.get_figheight() + 0.2 * max(0, -(-len(labels) // columns) - 2))
    canvas.legend(handles, labels, loc="outside upper left", ncols=columns)


@contextmanager
def drawing(path: Path, *, height: float, shaded: bool = False) -> Iterator[Canvas]:
    """A canvas ``height`` inches high that is written as a PNG, and as an SVG; bytes depend on the drawing only.

    With ``shaded`` it may hold photographs: dithering approximates the shades that are not in its palette, and there is
    no SVG.
    """
    with mpl.rc_context(STYLE):
        density = SHADED_DENSITY if shaded else DENSITY
        canvas = Canvas(figsize=(WIDTH, height), dpi=density, layout="constrained")
        painter: Any = FigureCanvasAgg(canvas)
        yield canvas
        canvas.draw_without_rendering()  # the layout needs a second pass: words beside heatmaps shrink these
        painter.draw()
        picture = Image.fromarray(np.asarray(painter.buffer_rgba())[..., :3])
        # Without the k-means step the lightest shades, those of bands, would be assigned each other's colours.
        few = picture.quantize(SHADES, Image.Quantize.MAXCOVERAGE, kmeans=1)
        if shaded:
            colours = np.array(few.getpalette(), dtype=np.uint8).reshape(-1, 3)
            colours[colours.min(axis=1) > NEARLY_WHITE] = 255
            few.putpalette(colours.tobytes())
            few = picture.quantize(palette=few, dither=Image.Dither.FLOYDSTEINBERG)
        path.parent.mkdir(parents=True, exist_ok=True)
        few.save(path, optimize=True)
        if not shaded:
            canvas.savefig(path.with_suffix(".svg"), format="svg", metadata=dict.fromkeys(UNSAID))
