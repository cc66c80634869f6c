"""What reports of translation papers show: scores by source length, where attention peaks, and attention as pictures.

Attention is also data for the explorer: of several sentences by one variant, of one by several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shared.claims.results import RunResults
from shared.metrics.quantities import Example, Measure
from shared.metrics.registry import measure
from shared.reports.curves import LearningCurves
from shared.reports.document import Block, Figure, Paragraph, Table, extremes, plain, signed
from shared.reports.exhibits import KindReport, OfPanels, OfVariant, OfVariants, Results, panels
from shared.reports.explorer import Attention, Explored
from shared.reports.figures import WIDTH, bar_of_weights, draw_weights, drawing, fitting, legend_above, plot_line
from shared.reports.naming import PALETTE, name_and_code, name_and_id, name_of, styles_of
from shared.tasks.examples import kept_alike, kept_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPLITS = ("test", "test_long")
"""The splits of a breakdown: the test split, and the one that continues it with longer sentences. Other splits, with
noise or of another year, would blur the breakdown."""
INNER = (-2, -1, 0, 1, 2)
"""Offsets from the gold source word that have columns of their own."""
REACH = 4
"""Offsets beyond are summed into the outermost bars."""
Bin = tuple[int, int]
Pair = Mapping[str, Any]
BAR = 0.3  # inches of the bar below
DRAWN = 4  # sentences of a variant
COMPARED = 14  # symbols of the longer side
ABREAST = 34  # symbols of the longest sentence of which two stand beside each other
SENTENCES = 4  # of each variant, as data
SYMBOLS = 40  # of such a sentence's longer side: more would be no pleasure to read


class BinScore(NamedTuple):
    """The measure in one bin.

    Attributes:
        bin: inclusive range of the covariate.
        centre: mean covariate of its examples.
        n: examples in it.
        value, interval: of the mean over seeds, 95 %, over examples and seeds.
    """

    bin: Bin
    centre: float
    n: int
    value: float
    interval: tuple[float, float]


def round_bins(values: Sequence[float], *, fewest: int = 20) -> list[Bin]:
    """Bins of a round width (5 up to 30, else 10) over positive integers; a thin one joins the one before.

    Args:
        values: the covariate of every example.
        fewest: examples that a bin must hold.
    """
    top = int(max(values))
    width = 5 if top <= 30 else 10
    bins: list[Bin] = []
    for low in range(1, top + 1, width):
        count = sum(low <= value < low + width for value in values)
        if bins and count < fewest:
            bins[-1] = (bins[-1][0], low + width - 1)
        else:
            bins.append((low, low + width - 1))
    return bins


def scores_by_length(runs: Sequence[RunResults]) -> tuple[str, dict[str, list[BinScore]]]:
    """The measure that is shown by source length, the brackets' F1 of trees, else BLEU; and who has how much of it.

    Args:
        runs: variants of one task, which all share the bins.

    Returns:
        The name of the measure, and variant to its values; empty where no variant has any.
    """
    from shared.claims.estimates import runs_with  # brings scipy

    name, shown = "bracket_f1", runs_with(runs, "brackets")
    if not shown:
        name, shown = "bleu", runs_with(runs, "bleu")
    bins = round_bins([row["source_length"] for row in _tested(shown[0], shown[0].seeds[0])]) if shown else []
    return name, {run.variant: score_by_length(run, measure(name), bins) for run in shown}


def score_by_length(run: RunResults, of: Measure, bins: Sequence[Bin]) -> list[BinScore]:
    """Evaluate ``of`` on the test sentences of every bin of source lengths that has any.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    from shared.claims.estimates import estimate_examples  # brings scipy
    from shared.claims.statistics import generator

    scores = []
    examples = [_tested(run, seed) for seed in run.seeds]
    for low, high in bins:
        taken = [[row for row in rows if low <= row["source_length"] <= high] for rows in examples]
        if not all(taken):
            continue
        rng = generator(run.variant, of.title, str(low))
        estimate = estimate_examples(of, taken, rng, str(run.folder), alike=not run.drawn_anew)
        centre = float(np.mean([row["source_length"] for row in taken[0]]))
        scores.append(BinScore((low, high), centre, len(taken[0]), estimate.value, estimate.interval()))
    return scores


def _tested(run: RunResults, seed: int) -> list[Example]:
    """The examples of a seed in :data:`SPLITS`, in an order that all variants share."""
    return [row for row in run.examples[seed] if row["split"] in SPLITS]


def also_longer(runs: Sequence[RunResults]) -> str:
    """What to add to a caption where the test split is continued with longer sentences; else nothing."""
    if not any(row["split"] == SPLITS[1] for run in runs for row in run.examples.get(run.seeds[0], [])):
        return ""
    return f" The longer sentences of the split {SPLITS[1]} are included in what is shown by length and by offset."


def alignment_offsets(run: RunResults) -> dict[int, float]:
    """Share of aligned target words by where attention peaked: source position minus the nearest gold one.

    Returns:
        offset to share, over all seeds; empty where the examples carry no alignments.
    """
    counts: Counter[int] = Counter()
    for rows in run.examples.values():
        for row in rows:
            for offset, count in (row.get("alignment") or {}).get("offsets", {}).items():
                counts[int(offset)] += count
    total = sum(counts.values())
    return {offset: count / total for offset, count in sorted(counts.items())}


def tables(runs: Sequence[RunResults]) -> list[Block]:
    """Of the variants of one task the scores by source length, and the shares of target words by attention's peak."""
    found: list[Block] = []
    name, scored = scores_by_length(runs)
    if scored:
        counts = next(iter(scored.values()))
        heads = [f"{score.bin[0]}–{score.bin[1]} (n = {score.n})" for score in counts]
        rows = [[name_and_code(one), *(plain(score.value, 1) for score in scores)] for one, scores in scored.items()]
        found.append(Table((f"{measure(name).title} by source length", *heads), rows, "l" + "r" * len(counts)))
    shares = {run.variant: by_offset for run in runs if (by_offset := alignment_offsets(run))}
    if shares:
        heads = ["0" if offset == 0 else signed(offset, 0) for offset in INNER]
        rows = [
            [
                name_and_code(variant),
                *(plain(by_offset.get(offset, 0.0), 3) for offset in INNER),
                plain(sum(share for offset, share in by_offset.items() if offset not in INNER), 3),
            ]
            for variant, by_offset in shares.items()
        ]
        found.append(Table(("Attention peak minus gold position", *heads, "further"), rows, "lrrrrrr"))
    said = also_longer(runs) if found else ""
    return [*found, Paragraph(said.strip())] if said else found


class ScoresByLength(OfPanels):
    """Figures ``<measure>_by_length_<panel>.png``: BLEU of panels that translate, the brackets' F1 of those that parse.

    With BLEU this is Figure 2 of Bahdanau et al. (2015). A task that no variant of the panels is of is shown whole.
    """

    def measures(self) -> Sequence[str]:
        """BLEU, and the brackets' F1."""
        return ("bleu", "bracket_f1")

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The score against source length with 95 % bands, a line per variant, panel by panel."""
        figures = []
        for panel in panels(results, self.panels):
            name, scored = scores_by_length(panel.runs)
            if not scored:
                continue
            path, of = folder / f"{name}_by_length_{panel.name}.png", measure(name)
            lowest, highest = of.most, 0.0
            with drawing(path, height=3.7) as canvas:
                axes = canvas.subplots()
                styles = styles_of([name_of(variant) for variant in scored])
                for style, (variant, scores) in zip(styles, scored.items(), strict=True):
                    x, y = [score.centre for score in scores], [score.value for score in scores]
                    low, high = np.clip([score.interval for score in scores], 0.0, of.most).T
                    plot_line(axes, style, len(scored), (x, y, low, high), label=name_of(variant), marked=True)
                    lowest, highest = min(lowest, *low), max(highest, *high)
                axes.set(xlabel="Source length (words)", ylabel=of.title)
                base = lowest if 2.0 * lowest > highest else 0.0
                margin = max(0.06 * (highest - base), 1.0)  # all may be 100
                axes.set_ylim(max(base - margin, 0.0), highest + margin)
                legend_above(canvas, axes)
            last = {name_of(variant): scores[-1].value for variant, scores in scored.items()}
            said = f"{of.title} against source length, with 95 % bands over test sentences and seeds."
            longer = also_longer([run for run in panel.runs if run.variant in scored])
            figures.append(Figure(path, f"{extremes(f'{of.title} of the longest', last)}{panel.title}. {said}{longer}"))
        return figures


class AlignmentOffsets(OfPanels):
    """Figures ``alignment_offsets_<panel>.png``, of panels with attention and gold alignments.

    A task that no variant of the panels is of is shown whole.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """How far from the gold source word attention peaks, a group of bars per variant, panel by panel."""
        figures, positions = [], np.arange(-REACH, REACH + 1)
        inner = [f"{position:+d}".replace("-", "−") if position else "0" for position in positions[1:-1]]
        for panel in panels(results, self.panels):
            styles = styles_of([name_of(run.variant) for run in panel.runs])
            pairs = zip(styles, panel.runs, strict=True)
            aligned = [(style, run, of) for style, run in pairs if (of := alignment_offsets(run))]
            if not aligned:
                continue
            path, width = folder / f"alignment_offsets_{panel.name}.png", 0.8 / len(aligned)
            with drawing(path, height=3.2) as canvas:
                axes = canvas.subplots()
                for place, (style, run, offsets) in enumerate(aligned):
                    shares = np.zeros(len(positions))
                    for offset, share in offsets.items():
                        shares[min(max(offset, -REACH), REACH) + REACH] += share
                    left = positions + (place - (len(aligned) - 1) / 2) * width
                    colour = [*PALETTE.values()][style % len(PALETTE)]
                    axes.bar(left, shares, width * 0.92, color=colour, label=name_of(run.variant))
                axes.set_xticks(positions, [f"≤ −{REACH}", *inner, f"≥ +{REACH}"])
                axes.set(xlabel="Attended position minus gold position", ylabel="Share of target words", ylim=(0, 1))
                axes.grid(axis="x", visible=False)
                legend_above(canvas, axes)
            found = extremes("Share at the gold word", {name_of(run.variant): of.get(0, 0.0) for _, run, of in aligned})
            caption = f"Where the attention peaks relative to the gold source word.{also_longer(panel.runs)}"
            figures.append(Figure(path, f"{found}{panel.title}. {caption}"))
        return figures


def longer_sides(pairs: Sequence[Pair]) -> list[int]:
    """Symbols of each pair's source or target, whichever has more."""
    return [max(len(pair["source"]), len(pair["target"])) for pair in pairs]


def _grid(path: Path, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
    """Draw the weights of pairs, two abreast where they are short."""
    longest = max(longer_sides(pairs))
    columns = 2 if longest <= ABREAST and len(pairs) > 1 else 1
    lines = [pairs[first : first + columns] for first in range(0, len(pairs), columns)]
    heights = [_panel_height(line, columns) for line in lines]
    with drawing(path, height=sum(heights) + BAR) as canvas:
        panels = canvas.subplots(len(lines), columns, squeeze=False, height_ratios=heights).ravel()
        for axes, pair, label in zip(panels, pairs, labels, strict=False):
            _heatmap(axes, pair, size=6 if longest > 20 else 7.5 if longest > 12 else 8.5)
            axes.set_xlabel(label)
        for axes in panels[len(pairs) :]:
            axes.set_visible(False)
        bar_of_weights(canvas, panels)


def _panel_height(pairs: Sequence[Pair], columns: int) -> float:
    """Inches: square cells at the panel's width, plus room for the source words."""
    tallest = max(pair["weights"].shape[0] / pair["weights"].shape[1] for pair in pairs)
    words = max(len(str(word)) for pair in pairs for word in pair["source"])
    return float(min(WIDTH, (WIDTH / columns - 0.9) * min(tallest, 1.6)) + 0.085 * words + 0.5)


def _heatmap(axes: Axes, pair: Pair, *, size: float) -> None:
    from matplotlib.patches import Rectangle

    draw_weights(axes, pair["weights"], columns=pair["source"], rows=pair["target"], size=size)
    for s, t in pair.get("gold", ()):
        axes.add_patch(
            Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, edgecolor=PALETTE["orange"], linewidth=1.2, clip_on=False)
        )


def maps_of_sentences(kept: Mapping[str, Sequence[Pair]]) -> list[Attention]:
    """From every target word to the source words, by model and sentence; of each variant what it has kept."""
    maps = []
    for variant, pairs in kept.items():
        short = [pair for pair in pairs if max(pair["weights"].shape) <= SYMBOLS]
        for number, pair in enumerate(short[:SENTENCES], start=1):
            choices = {"Model": name_and_id(variant), "Attention": "to the source", "Sentence": str(number)}
            rows, columns = [*map(str, pair["target"])], [*map(str, pair["source"])]
            gold = [(int(t), int(s)) for s, t in pair.get("gold", ())]
            maps.append(Attention(choices, rows, columns, pair["weights"].astype(float).tolist(), gold=gold))
    return maps


class Heatmaps(OfVariant):
    """A figure ``alignments_<variant>.png`` of attention on several test sentences, source on top, target on the side.

    As Figure 3 of Bahdanau et al. (2015), but the darker, the more weight; a gold link, where known, is framed.
    """

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        kept, path = kept_of(results, self.variant), folder / f"alignments_{self.variant}.png"
        if not kept:
            return ()
        pairs = kept[:DRAWN]
        _grid(path, pairs, [f"({letter})" for letter in "abcd"[: len(pairs)]])
        return [Explored(path, self.caption, maps=maps_of_sentences({self.variant: kept}))]


@dataclass(frozen=True)
class SideBySide(OfVariants):
    """A figure ``alignments_<variant>_<variant>….png`` of the attention of several variants on one test sentence.

    It is the longest kept with at most :data:`COMPARED` symbols on either side; if all have more, the shortest. Colours
    as in :class:`Heatmaps`, except that a weight of exactly zero is beige: so local attention shows its window.

    Attributes:
        caption: says what is compared; each variant shows its first seed.
    """

    caption: str

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if at least two of the variants have kept their attention."""
        kept = kept_alike(results, self.shown, ["source", "target"])
        if len(kept) < 2:
            return ()
        path = folder / f"alignments_{'_'.join(self.shown).replace('/', '-')}.png"
        chosen = fitting(longer_sides(next(iter(kept.values()))), COMPARED)
        pairs = [of[chosen] | {"weights": np.ma.masked_equal(of[chosen]["weights"], 0.0)} for of in kept.values()]
        _grid(path, pairs, [*map(name_of, kept)])
        return [Explored(path, f"{self.caption} Beige: a weight of exactly zero.", maps=maps_of_sentences(kept))]


REPORT = KindReport(tables=tables, figures=(ScoresByLength(), AlignmentOffsets(), LearningCurves()))
