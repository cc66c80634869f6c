"""What a memory of earlier segments is good for: losses by its length and by position, what is recalled, effective
context lengths (section 4.3), and what scoring costs (table 9)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replications.transformer_xl.texts import evaluation
from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.metrics.quantities import Example
from shared.reports.curves import Points, by_size, draw_curves, ends, plot_curves
from shared.reports.document import SPREAD, Block, Figure, Paragraph, Table, Text, extremes, over_seeds
from shared.reports.exhibits import OfPanels, OfVariant, Results, panels
from shared.reports.figures import COLOURS, DASHES, MARKERS, drawing, legend_above, place_ticks, plain_powers
from shared.reports.naming import name_and_code, name_of
from shared.tasks.examples import read_arrays
from shared.tasks.language.measures import RATIOS

Part = tuple[float, float, float]
"""A place x, and what an example adds there to two sums, whose ratio is the value at x."""
Losses = Mapping[str, NDArray[np.float64]]
"""Model to losses (C, P) in nats, l_i(c, t), with exactly c symbols of context before each of P positions of a text;
for C lengths c."""
THRESHOLD = 0.01  # of the gain of a useful step (appendix C)
QUANTITIES = ("microseconds_sliding", "microseconds_reuse", "token_ratio", "speedup")
"""What the study of evaluation speed measures at every attention length."""
WIDEST = 7
"""Columns of means with their ranges that fit on a page beside the first one."""
GAINS = (
    "Relative gain in perplexity from one more step of context, over the best model of the group, on the share r of "
    "the symbols that are hardest for the group. Below the dotted line, 1 %, a model's effective context ends. Mean "
    "over seeds, lowest to highest seed shaded."
)
LENGTHS = (
    "Relative effective context lengths, symbols: the shortest context from which one step more gains a model less "
    "than 1 % in perplexity over the best of the group, on the share r of the symbols that are hardest for the group. "
    "Mean over seeds, in brackets the lowest and the highest seed. Lengths of different groups do not compare."
)


@dataclass(frozen=True)
class ByPlace(OfPanels):
    """Figures ``<name>_<panel>.png`` of one quantity of every variant against another, with a table after each.

    Attributes:
        name: what the files begin with.
        caption: what is drawn; ``{y}`` stands for the label of the values.
        x: label of the axis, with its unit.
        parts: what an example adds, given the length of the memory that its variant is judged with.
        recalled: whether the values are per cents of what is recalled; else they are losses.
        powers: whether x is drawn on a logarithmic scale.
    """

    name: str = ""
    caption: str = ""
    x: str = ""
    parts: Callable[[Example, str], Iterator[Part]] = lambda row, memory: iter(())
    recalled: bool = False
    powers: bool = True

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each panel that has the numbers."""
        blocks: list[Block] = []
        for panel in panels(results, self.panels, others=False):
            curves = {run.variant: points for run in panel.runs if (points := self.curve(run))}
            runs = [run for run in panel.runs if run.variant in curves]
            of, token = "Perplexity" if _in_words(panel.runs[0]) else "Bits", panel.runs[0].token
            path, y = folder / f"{self.name}_{panel.name}.png", "Recalled (%)" if self.recalled else f"{of} per {token}"
            if draw_curves(runs, list(curves.values()), path, x=self.x, y=y, powers=self.powers, marked=True):
                head = f"{y}, by {self.x[0].lower()}{self.x[1:]}"
                said = ends(f"{y}, at the right", runs, [*curves.values()])
                blocks.append(Figure(path, f"{said}{panel.title}. {self.caption.format(y=y)} {SPREAD}"))
                blocks.append(_table(head, curves, 1 if self.recalled else 3))
        return blocks

    def curve(self, run: RunResults) -> Points:
        """Place to the value of each seed there, on the first test split."""
        points: Points = defaultdict(list)
        for seed, rows in run.examples.items():
            sums: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
            memory = str(evaluation(run, seed)["reach"]["memory"])
            for row in rows:
                for place, value, count in self.parts(row, memory) if row["split"] == rows[0]["split"] else ():
                    sums[place][0] += value
                    sums[place][1] += count
            for place, (value, count) in sums.items():
                if count:
                    points[place].append(self._shown(run, value / count))
        return dict(points)

    def _shown(self, run: RunResults, value: float) -> float:
        if self.recalled:
            return value
        return math.exp(value) if _in_words(run) else value / math.log(2)


def _in_words(run: RunResults) -> bool:
    """Whether losses are drawn as the perplexity of words, and not as bits of other units."""
    return "word_perplexity" in run.mean


def _table(head: str, curves: Mapping[str, Points], digits: int) -> Table:
    """A column for every place; or a row, where there are too many for the width of a page."""
    places = sorted({place for points in curves.values() for place in points})
    cells = [[over_seeds(points.get(place, ()), digits) for place in places] for points in curves.values()]
    titles = [f"{place:g}" for place in places]
    rows: list[list[Text]]
    if len(places) <= WIDEST:
        rows = [[name_and_code(variant), *row] for variant, row in zip(curves, cells, strict=True)]
        return Table((head, *titles), rows, "l" + "r" * len(places))
    rows = [[title, *column] for title, *column in zip(titles, *cells, strict=True)]
    return Table((head, *map(name_of, curves)), rows, "l" + "r" * len(curves))


def _by_memory(row: Example, memory: str) -> Iterator[Part]:
    """Nats and units at every length of the memory, of those examples that were scored at several."""
    if row.get("memories"):
        for length, nats in ({memory: row["nll"]} | row["memories"]).items():
            yield float(length), nats, row["units"]


def _by_position(row: Example, memory: str) -> Iterator[Part]:
    """Nats and units in every part of the segment, from 1."""
    for part, (nats, count) in enumerate(row.get("positions") or (), start=1):
        yield float(part), nats, count * row["units"] / row["tokens"]


def _by_distance(row: Example, memory: str) -> Iterator[Part]:
    """Per cent recalled at every distance, which is the end of a range."""
    for distance, (_, count, found) in (row.get("recalls") or {}).items():
        yield float(distance), 100.0 * found, count


MemoryLengths = partial(
    ByPlace, name="loss_by_memory", parts=_by_memory, x="Memory (symbols of earlier segments)",
    caption="{y} on the test split against the length of the memory that it is scored with:",
)  # fmt: skip
SegmentPositions = partial(
    ByPlace, name="loss_by_position", parts=_by_position, x="Part of the segment (of eight, in reading order)",
    caption="{y} on the test split by the place that a symbol has in the segment it is scored in:", powers=False,
)  # fmt: skip
RecallDistances = partial(
    ByPlace, name="recall_by_distance", parts=_by_distance, x="Distance (symbols)", recalled=True,
    caption="Share of the repeated words of the test split that have a probability above one half, by how far back "
    "they were said (at each range's end):",
)  # fmt: skip


class ContextLengths(OfPanels):
    """Figures ``contexts_<group>.png`` and tables of relative effective context lengths, which it adds to the results.

    Its panels are groups of variants whose lengths are found together: the metrics ``recl_<group>_<100 r>``.
    """

    def measures(self) -> Sequence[str]:
        """The lengths of every group."""
        return [f"recl_{group}_{percent}" for group in self.panels for percent in RATIOS]

    def completed(self, results: Results) -> Results:
        """The results with the metrics ``recl_<group>_<100 r>`` of every seed and their mean, for r = 0.1, 0.5 and 1.

        A seed's length is found among the group's models of this seed. It is one of the lengths of context that were
        measured; ``recl_<group>_step`` is the widest step between two of them.

        Raises:
            ReplicationError: see :func:`context_losses`.
        """
        completed = dict(results)
        for group, variants in self.panels.items():
            found: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
            for seed, (losses, contexts) in context_losses(results, variants).items():
                for percent, r in RATIOS.items():
                    for variant, length in relative_effective_context_length(losses, contexts, r).items():
                        found[variant][seed][f"recl_{group}_{percent}"] = length
                        found[variant][seed][f"recl_{group}_step"] = float(np.diff(np.sort(contexts)).max())
            for variant, numbers in found.items():
                run = completed[variant]
                metrics = {seed: {**run.metrics[seed], **numbers.get(seed, {})} for seed in run.seeds}
                mean = {name: fmean(of[name] for of in numbers.values()) for name in next(iter(numbers.values()))}
                completed[variant] = replace(run, metrics=metrics, mean={**run.mean, **mean})
        return completed

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A figure and a table for each group of which two variants measured losses by context."""
        blocks: list[Block] = []
        for group, names in self.panels.items():
            found = context_losses(results, names)
            if not found:
                continue
            losses, contexts = next(iter(found.values()))
            runs, path = [results[name] for name in losses], folder / f"contexts_{group}.png"
            with drawing(path, height=3.2) as canvas:
                panels = canvas.subplots(1, len(RATIOS), sharey=True)
                for axes, r in zip(panels, RATIOS.values(), strict=True):
                    gains = [relative_gains(of_seed, r) for of_seed, _ in found.values()]
                    curves = [
                        {length: [100 * float(seed[run.variant][step]) for seed in gains]
                         for step, length in enumerate(contexts[:-1].tolist())}
                        for run in runs
                    ]  # fmt: skip
                    axes.axhline(100 * THRESHOLD, color="#666666", linewidth=1.0, linestyle=":")
                    plot_curves(axes, runs, curves)
                    axes.set_yscale("symlog", linthresh=100 * THRESHOLD)
                    axes.yaxis.set_major_formatter("{x:g}")
                    axes.set_title(f"r = {r}")
                panels[0].set_ylabel("Relative gain (%)")
                canvas.supxlabel("Context (symbols)", fontsize="medium")
                legend_above(canvas, panels[0])
            rows: list[list[Text]] = [
                [
                    name_and_code(run.variant),
                    *(over_seeds([run.metrics[seed][f"recl_{group}_{p}"] for seed in found], 0) for p in RATIOS),
                ]
                for run in runs
            ]
            lengths = Table((f"Group {group}", *(f"r = {r}" for r in RATIOS.values())), rows, "lrrr")
            reach = {name_of(run.variant): run.mean[f"recl_{group}_{max(RATIOS)}"] for run in runs}
            said = extremes(f"Effective context in symbols, r = {RATIOS[max(RATIOS)]}", reach)
            blocks += [Figure(path, f"{said}Group {group}. {GAINS}"), lengths, Paragraph(LENGTHS)]
        return blocks


def context_losses(results: Results, variants: Sequence[str]) -> dict[int, tuple[Losses, NDArray[np.int64]]]:
    """Seed to the losses (C, P) of those ``variants`` that measured them, and to the lengths (C,) of their contexts.

    Nothing of a single variant, and of seeds that all have: some have more, which confirm other claims.

    Raises:
        ReplicationError: they have not the same positions or lengths, or a file is broken.
    """
    runs = [results[name] for name in variants if name in results and results[name].seeds]
    measured = [run for run in runs if all(run.judged(seed, "contexts.npz").exists() for seed in run.seeds)]
    if len(measured) < 2:
        return {}
    found: dict[int, tuple[Losses, NDArray[np.int64]]] = {}
    for seed in sorted(set.intersection(*({*run.seeds} for run in measured))):
        paths = {run.variant: run.judged(seed, "contexts.npz") for run in measured}
        arrays = {variant: read_arrays(path, "context", "nats", "places") for variant, path in paths.items()}
        first = arrays[measured[0].variant]
        for variant, other in arrays.items():
            if not all(np.array_equal(first[name], other[name]) for name in ("context", "places")):
                raise ReplicationError(
                    f"the context lengths of {variant} cannot be compared with those of {measured[0].variant}: their "
                    "losses are of other symbols or lengths; give both the same evaluation.contexts."
                )
        found[seed] = ({variant: array["nats"] for variant, array in arrays.items()}, first["context"])
    return found


def relative_gains(losses: Losses, r: float) -> dict[str, NDArray[np.float64]]:
    """Return the gain of each model per step to a longer context, g_i(c, c') of appendix C with c' the next length.

    All models have the same baseline, the best loss of the group with the shorter context: b(c, t) =
    min_i l_i(c, t). Over T, the share ``r`` of the positions with the largest baseline, the relative loss is
    f_i(c, c') = mean_T min(b(c, t), l_i(c', t)), and the gain is the relative reduction of perplexity,
    1 - exp(f_i(c, c') - f_i(c, c)).

    Args:
        losses: of all models of the group, with context lengths in ascending order.
        r: share of the positions, above 0 and at most 1.

    Returns:
        Model name to (C - 1,) gains, none negative; gain k belongs to the step from length k to length k + 1.
    """
    baseline = np.min(list(losses.values()), axis=0)  # (C, P)
    chosen = max(1, round(r * baseline.shape[1]))
    hardest = np.argsort(-baseline, axis=1, kind="stable")[:-1, :chosen]  # (C - 1, |T|)
    b = np.take_along_axis(baseline[:-1], hardest, axis=1)

    def gain(longer: NDArray[np.float64]) -> NDArray[np.float64]:
        improved = np.minimum(b, np.take_along_axis(longer, hardest, axis=1))
        return np.asarray(-np.expm1(improved.mean(axis=1) - b.mean(axis=1)))

    return {model: gain(of[1:]) for model, of in losses.items()}


def relative_effective_context_length(losses: Losses, contexts: NDArray[np.int64], r: float) -> dict[str, int]:
    """Return for each model the shortest context whose step to the next length gains less than :data:`THRESHOLD`.

    If every step gains at least that much, the result is the longest context, which is a lower bound only.

    Args:
        losses: as in :func:`relative_gains`.
        contexts: (C,) their lengths, ascending in steps of Δ; the search begins with the first.
        r: share of the positions.
    """
    gains = relative_gains(losses, r)
    # The longest context has no further step, so its gain is zero.
    return {model: int(contexts[int(np.argmax([*(of < THRESHOLD), True]))]) for model, of in gains.items()}


@dataclass(frozen=True)
class EvaluationSpeed(OfVariant):
    """A figure ``speed_<variant>.png`` of what scoring a symbol costs, with states kept and in sliding windows."""

    caption: str = (
        "what scoring one symbol costs, by how many symbols before it are seen: with the states of earlier segments "
        "kept, and in windows that slide by one symbol, each read anew. Left: time; right: how many times more the "
        "windows take, in time and in symbols that go through the network."
    )

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the study was run."""
        run = results.get(self.variant)
        quantities = {name: by_size(run, name, "number") for name in QUANTITIES} if run is not None else {}
        if not all(quantities.values()) or not quantities:
            return ()

        def line(axes: Any, quantity: str, index: int, label: str, *, above: bool = True) -> None:
            """The mean over the seeds, their range shaded; named above its end, or below, where a rising line leaves
            room."""
            points, colour = quantities[quantity], COLOURS[index]
            places = sorted(points)
            low, mean, high = ([float(of(points[place])) for place in places] for of in (min, np.mean, max))
            axes.fill_between(places, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(places, mean, color=colour, linestyle=DASHES[index], marker=MARKERS[index])
            axes.set_xscale("log")
            place_ticks(axes, places, log=False)
            end, shift, ha, va = -1, (0, 7), "right", "bottom"
            if not above:
                end, shift, ha, va = -min(2, len(places)), (4, -7), "left", "top"
            place = (places[end], mean[end])
            axes.annotate(label, place, shift, textcoords="offset points", color=colour, ha=ha, va=va)

        path = folder / f"speed_{self.variant}.png"
        with drawing(path, height=3.2) as canvas:
            left, right = canvas.subplots(1, 2)
            line(left, "microseconds_sliding", 0, "sliding windows")
            line(left, "microseconds_reuse", 1, "states kept", above=False)
            left.set(ylabel="Time per scored symbol (µs)")
            line(right, "token_ratio", 2, "symbols")
            line(right, "speedup", 0, "time", above=False)
            right.set(ylabel="Sliding windows / states kept")
            for axes in (left, right):
                axes.set_yscale("log")
                axes.set(xlabel="Attention length (symbols)")
                axes.margins(y=0.15)
                plain_powers(axes.yaxis)
        longest, times = max(quantities["speedup"].items())
        said = f"With {longest:g} symbols, sliding windows take {fmean(times):.3g} times as long as kept states."
        return [Figure(path, f"{said} {self.variant}: {self.caption}")]
