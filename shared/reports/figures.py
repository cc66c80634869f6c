"""How figures are drawn: without a display, the same bytes on every run, legible 700 pixels wide; and those of effects.

Nothing here imports matplotlib before a figure is drawn, so that a figure can stand beside its table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shared.reports.naming import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

WIDTH = 7.0  # inches: 700 pixels at the 100 pixels per inch at which 10 points read as text
COLOURS = (*PALETTE.values(),)
VERDICTS = {
    "reproduced": "#009E73", "contradicted": "#D55E00", "inconclusive": "#8a6d00", "verified": "#0072B2",
    "refuted": "#D55E00", "not tested": "#666666", "in part": "#8a6d00", "mixed": "#8a6d00",
}  # fmt: skip
INK = "#1b1f24"  # of words, as in style.css
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (3, 1, 1, 1, 1, 1)), ":", (0, (5, 1)), (0, (1, 1)))
GROUND, MIDDLE, FULL = "#eef2f7", "#6baed6", "#08306b"  # weights of 0, 1/2 and 1
UNSEEN = "#e6d5ae"  # a weight that is exactly zero
STYLE = Path(__file__).with_name("templates") / "figures.mplstyle"
DENSITY, SHADED_DENSITY = 200, 130  # pixels per inch, of lines and of photographs
SHADES = 256  # as many as a PNG's palette has; enough for lines and bands, at a third of the bytes
UNSAID = ("Creator", "Date", "Format", "Type")  # what an SVG says of itself, so that its bytes depend on nothing else
NEARLY_WHITE = 247  # the palette of photographs has it no whiter, for the ground to be white
LINEAR = 2.0
"""Up to where a scale for far effects is linear, either way."""
TICKS = (-100, -10, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1000)
CLAIM = 34  # letters in a line of a claim beside its effect
LETTERS = 13  # points: a phone shows the figure of a claim at half of its size
SEED, FAILED, MEAN, RELEVANT, PAPER = "#0072B2", "#D55E00", "#1b1f24", "#009E73", "#CC79A7"


@contextmanager
def drawing(path: Path, *, height: float, shaded: bool = False) -> Iterator[Canvas]:
    """A canvas ``height`` inches high that is written as a PNG, and as an SVG; bytes depend on the drawing only.

    With ``shaded`` it may hold photographs: dithering approximates the shades that are not in its palette, and there is
    no SVG.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from PIL import Image

    with mpl.rc_context(fname=STYLE):
        density = SHADED_DENSITY if shaded else DENSITY
        canvas = Canvas(figsize=(WIDTH, height), dpi=density, layout="constrained")
        painter: Any = FigureCanvasAgg(canvas)
        yield canvas
        if (layout := canvas.get_layout_engine()) is not None:
            for _ in range(2):  # words beside heatmaps shrink these, which leaves other words more room
                layout.execute(canvas)
            canvas.set_layout_engine(None)  # else each form would be laid out again, twice
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


@contextmanager
def panels_drawn(path: Path, count: int, *, height: float, columns: int = 2, extra: float = 0.0) -> Iterator[Any]:
    """Panels side by side, at most ``columns`` in a line, each line ``height`` inches high: the canvas and its axes."""
    columns = min(columns, count)
    rows = -(-count // columns)
    with drawing(path, height=extra + height * rows) as canvas:
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axes in grid[count:]:
            axes.set_visible(False)
        yield canvas, grid[:count]


def plot_line(
    axes: Axes, index: int, count: int, curve: Sequence[Sequence[float]], *, label: str, marked: bool
) -> None:
    """Plot one line of ``count`` in the style ``index``: places, values, lower and upper end of its band.

    With more bands, each is more transparent, because bands overlap.
    """
    places, values, low, high = curve
    axes.fill_between(places, low, high, color=line_style(index)["color"], alpha=min(0.16, 0.5 / count), linewidth=0)
    marker = MARKERS[_dash(index)] if marked else None
    axes.plot(places, values, label=label, **line_style(index), marker=marker)


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes; styles beyond the palette have its colours again with other dashes and markers."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[_dash(index)]}


def _dash(index: int) -> int:
    return (index + index // len(COLOURS)) % len(DASHES)


def plain_powers(axis: Axis) -> None:
    """Set the ticks of a logarithmic axis with given limits: plain numbers, except very large and very small ones."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter

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


def legend_above(canvas: Canvas, *panels: Axes) -> None:
    """Put the legend above the plots, where it hides nothing and takes no width; panels may share lines."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, line)
    columns = max(1, min(3, len(entries), 90 // (6 + max(map(len, entries)))))  # letters that fit
    canvas.set_figheight(canvas.get_figheight() + 0.2 * max(0, -(-len(entries) // columns) - 2))
    canvas.legend([*entries.values()], [*entries], loc="outside upper left", ncols=columns)


def fitting(sizes: Sequence[int], symbols: int) -> int:
    """Index of the longest example of at most so many symbols; if all have more, of the shortest."""
    shortest = min(range(len(sizes)), key=sizes.__getitem__)
    return max((i for i, size in enumerate(sizes) if size <= symbols), key=sizes.__getitem__, default=shortest)


def shades_of_weights() -> Any:
    """The colours of weights of attention: the darker, the more, in the same colours in all papers; beige is masked."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", (GROUND, MIDDLE, FULL)).with_extremes(bad=UNSEEN)


def draw_weights(
    axes: Axes, weights: NDArray[Any], *, columns: Sequence[str], rows: Sequence[str], size: float, square: bool = True
) -> None:
    """Draw weights (rows, columns) of attention, with words in ``size`` points where given.

    Either side's words may be left out by giving none. Cells that are not ``square`` fill the panel.
    """
    axes.grid(visible=False)
    axes.imshow(
        weights, cmap=shades_of_weights(), vmin=0.0, vmax=1.0, interpolation="nearest",
        aspect="equal" if square else "auto",
    )  # fmt: skip
    axes.xaxis.tick_top()
    # Words of the data are no formulas, whatever dollar signs they have.
    axes.set_xticks(range(len(columns)), [str(word) for word in columns], rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(len(rows)), [str(word) for word in rows], fontsize=size, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def bar_of_weights(canvas: Canvas, panels: Iterable[Axes]) -> None:
    """Say below the heatmaps which colour is how much."""
    from matplotlib.cm import ScalarMappable

    bar = canvas.colorbar(
        ScalarMappable(cmap=shades_of_weights()), ax=[*panels], location="bottom", fraction=0.03, aspect=60, pad=0.02
    )
    bar.set_ticks([0.0, 0.5, 1.0], labels=["0", "0.5", "weight 1"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8.5)


@dataclass(frozen=True)
class Effect:
    """An effect in some unit.

    Attributes:
        claim: in words.
        verdict: on it.
        value: the effect.
        interval: its ends, if there are any.
        hollow: whether its circle is, to mark it.
    """

    claim: str
    verdict: str
    value: float
    interval: tuple[float, ...] = ()
    hollow: bool = False


def draw_forest(effects: Sequence[Effect], path: Path, label: str, *, far: bool = False) -> None:
    """Draw effects with their intervals, in the colours of their verdicts: 0 is no effect, 1 the unit.

    Args:
        effects: at least one, from top to bottom.
        path: of the PNG.
        label: of the axis, with the unit.
        far: whether effects beyond :data:`LINEAR` are on a logarithmic scale.
    """
    with drawing(path, height=0.9 + 0.44 * len(effects)) as canvas:
        axes = canvas.subplots()
        for place in (0.0, 1.0):
            axes.axvline(place, color="#666666", linewidth=1.4, linestyle="--" if place else "-")
        for row, effect in enumerate(effects):
            colour = VERDICTS[effect.verdict]
            if effect.interval:
                axes.plot(effect.interval, [row, row], color=colour, linewidth=3, solid_capstyle="butt")
            inside = "white" if effect.hollow else colour
            axes.plot([effect.value], [row], "o", color=colour, markersize=8, markerfacecolor=inside)
        axes.set_yticks(range(len(effects)), [fill(effect.claim, CLAIM) for effect in effects], color=INK)
        axes.set_ylim(len(effects) - 0.4, -0.6)
        axes.margins(x=0.08)
        if far:
            ends = [end for effect in effects for end in effect.interval or (effect.value,)]
            most, least = 1.15 * max(LINEAR, *ends), 1.15 * min(0.0, *ends)
            axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.0)
            axes.set_xlim(least or -0.3, most)
            ticks = [tick for tick in TICKS if least <= tick <= most]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        _effects_along(axes, label, letters=11)


def draw_seeds(lead: Mapping[str, Any], failed: Collection[int], path: Path, label: str, one_sided: str = "") -> None:
    """Draw the comparison that decides a claim.

    Every seed is a point, a cross where it ``failed``: where a model did not learn its task. The mean stands below them
    with its 95 % interval, and the paper's effect where it is the same quantity.

    Args:
        lead: the comparison, as claims.json has it.
        failed: seeds.
        path: of the PNG.
        label: of the axis.
        one_sided: of an equality, on which side the effect may lie as far as it likes: greater or less.
    """
    from matplotlib.ticker import MaxNLocator

    ratio, relevant, seeds = lead["scale"] == "log", lead["relevant"], lead["seeds"]
    with drawing(path, height=2.1) as canvas:
        axes = canvas.subplots()
        if ratio:
            axes.set_xscale("log")
        axes.axvline(1.0 if ratio else 0.0, color="#666666", linewidth=1.6)
        other = 1.0 / relevant if ratio else -relevant
        ends = {"greater": (other,), "less": (relevant,), "": (other, relevant)}
        for end in ends[one_sided] if lead["kind"] == "equal" else (relevant,):
            axes.axvline(end, color=RELEVANT, linewidth=1.6, linestyle="--")
        for place, (seed, value) in enumerate(zip(seeds, lead["per_seed"], strict=True)):
            mark, colour = ("X", FAILED) if seed in failed else ("o", SEED)
            axes.plot([value], [1.0 + (place + 0.5) / len(seeds)], mark, color=colour, markersize=8, alpha=0.85)
        if lead["interval"] is not None:
            axes.plot(lead["interval"], [0.5, 0.5], color=MEAN, linewidth=3)
        axes.plot([lead["effect"]], [0.5], "|", color=MEAN, markersize=18, markeredgewidth=3)
        if lead["paper"] is not None:
            axes.plot([lead["paper"]], [0.5], "D", color=PAPER, markersize=9)
        axes.set_ylim(0.0, 2.05)
        axes.set_yticks([0.5, 1.5], ["mean", "seeds"])
        axes.margins(x=0.06)
        _effects_along(axes, label, letters=LETTERS)
        if ratio:
            plain_powers(axes.xaxis)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6))


def _effects_along(axes: Axes, label: str, *, letters: int) -> None:
    """Effects along x, and names, which need no line, along y."""
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, labelsize=letters)
    axes.set_xlabel(label, fontsize=letters)
