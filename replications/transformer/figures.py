"""Figures of this paper alone: attention of every head, as its Figures 3 to 5, and loss by operations of training."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from shared.claims.results import RunResults
from shared.data.tokenizers import BOS, SPECIAL
from shared.reports.curves import Points, draw_curves, ends, read_curves, training_curves
from shared.reports.document import SPREAD, Figure
from shared.reports.exhibits import OfPanels, OfVariant, Results, first_run, panels
from shared.reports.explorer import Attention, Explored, maps_of_heads
from shared.reports.figures import WIDTH, bar_of_weights, draw_weights, drawing, fitting
from shared.reports.naming import name_and_id
from shared.tasks.examples import read_kept
from shared.tasks.translation.report import BAR, Pair, longer_sides

Kind = Literal["encoder", "decoder", "cross"]
SAID: dict[Kind, str] = {
    "encoder": "Self-attention of the encoder: from each source word (rows) to all.",
    "decoder": "Self-attention of the decoder: from each target word to come (rows) to those before it; beige: masked.",
    "cross": "Attention of the decoder: from each target word to come (rows) to the source words.",
}
BY_HEAD: dict[Kind, str] = {
    "encoder": "within the source, by head",
    "decoder": "within the target, by head",
    "cross": "to the source, by head",
}
POINTS = 7.5  # of the words
LINE, LETTER = 0.105, 0.06  # inches that a line of them and a letter take
GAP = 0.08  # inches between heatmaps
SYMBOLS = 14  # of the longer side of a sentence


def draw_heads(pairs: Sequence[Pair], kind: Kind, path: Path) -> None:
    """Draw the weights of every head as a small heatmap, one layer after the other.

    Words stand at the left of every row of heatmaps and above the first. The darker, the more. The sentence drawn is
    the longest kept with at most :data:`SYMBOLS` on either side; if all have more, the shortest.

    Args:
        pairs: of each kept sentence ``source`` (S,), ``target`` (T,) and, for N layers of H heads, ``encoder``
            (N, H, S, S), ``decoder`` (N, H, T, T), ``cross`` (N, H, T, S).
        kind: which of the three.
        path: of the PNG.
    """
    pair = pairs[fitting(longer_sides(pairs), SYMBOLS)]
    weights = pair[kind].astype(np.float32)
    layers, heads, height, width = weights.shape
    if kind == "decoder":
        weights = np.ma.masked_array(weights, np.broadcast_to(~np.tri(height, dtype=bool), weights.shape))
    above, beside = words_of(pair, kind)
    space = WIDTH - LETTER * max(len(word) for word in beside)
    across = min(_abreast(heads, int(space / (LINE * width + GAP))), layers * heads)
    down = -(-layers * heads // across)
    panel = (space / across - GAP) * height / width + 0.25
    with drawing(path, height=panel * down + LETTER * max(len(word) for word in above) + BAR) as canvas:
        panels = canvas.subplots(down, across, squeeze=False).ravel()
        for number, axes in enumerate(panels):
            if number >= layers * heads:
                axes.set_visible(False)
                continue
            layer, head = divmod(number, heads)
            draw_weights(
                axes, weights[layer, head], size=POINTS, columns=above if number < across else (),
                rows=beside if number % across == 0 else (),
            )  # fmt: skip
            axes.set_xlabel(f"layer {layer + 1}, head {head + 1}", fontsize=8.5)
        bar_of_weights(canvas, panels)


def words_of(pair: Pair, kind: Kind) -> tuple[list[str], list[str]]:
    """Words that are attended to, and words whose representation or prediction attends to them."""
    source, target = ([str(word) for word in pair[side]] for side in ("source", "target"))
    if kind == "encoder":
        return source, source
    return (source if kind == "cross" else [SPECIAL[BOS], *target[:-1]]), target


def _abreast(heads: int, room: int) -> int:
    """How many heatmaps stand side by side where there is room for so many: if possible, layers begin rows."""
    most = max(1, min(4, room))
    return next((n for n in range(most, 1, -1) if heads % n == 0 or n % heads == 0), most)


def maps_of_sentences(variant: str, pairs: Sequence[Pair], kind: Kind) -> list[Attention]:
    """The attention of one kind, by sentence, layer and head.

    Args:
        variant: whose.
        pairs: as of :func:`draw_heads`.
        kind: of the encoder, of the decoder, or from the one to the other.
    """
    maps = []
    for number, pair in enumerate(pairs, start=1):
        columns, rows = words_of(pair, kind)
        choices = {"Model": name_and_id(variant), "Attention": BY_HEAD[kind], "Sentence": str(number)}
        maps += maps_of_heads(choices, rows, columns, pair[kind])
    return maps


def loss_by_operations(run: RunResults) -> Points:
    """Operations of training so far to the seeds' losses on validation then; none where either was not recorded."""
    from shared.reports.runs import OPERATIONS  # brings scipy

    updates = [record["updates"] for record in run.runs.values()]
    if OPERATIONS not in run.mean or not any(updates):
        return {}
    each = run.mean[OPERATIONS] / statistics.fmean(updates)
    return {each * step: losses for step, losses in read_curves(run, metric="loss", split="valid").items()}


class Heads(OfVariant):
    """Figures ``heads_<variant>_<kind>.png`` of every head of every layer on one sentence."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each kind of attention, if the variant has kept its heads."""
        run, figures = first_run(results, self.variant), list[Figure]()
        pairs = read_kept(run.judged(run.seeds[0], "heads.npz")) if run else []
        for kind, said in SAID.items() if pairs else ():
            path = folder / f"heads_{self.variant}_{kind}.png"
            draw_heads(pairs, kind, path)
            maps = maps_of_sentences(self.variant, pairs, kind)
            figures.append(Explored(path, f"{self.caption.rstrip('.')}. {said}", maps=maps))
        return figures


class LossByOperations(OfPanels):
    """Figures ``loss_by_operations_<panel>.png``: validation loss against the operations of training so far."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel of which any variant counted its operations."""
        from shared.reports.runs import CONVENTION  # brings scipy

        figures = []
        for panel in panels(results, self.panels, others=False):
            path, curves = folder / f"loss_by_operations_{panel.name}.png", [*map(loss_by_operations, panel.runs)]
            y = f"Validation loss (nats per {panel.runs[0].token})"
            if draw_curves(panel.runs, curves, path, x="Training operations", y=y, powers=True):
                caption = "Loss on the validation split against the operations of training so far"
                said = ends("At the end of training", panel.runs, curves)
                figures.append(Figure(path, f"{said}{panel.title}. {caption}: {SPREAD} {CONVENTION}"))
        return figures


class LearningRates(OfPanels):
    """Figures ``learning_rate_<panel>.png``."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel that has a curve."""
        figures = []
        for panel in panels(results, self.panels, others=False):
            path = folder / f"learning_rate_{panel.name}.png"
            curves = training_curves(panel.runs, path, metric="learning_rate", label="Learning rate", split="train")
            if curves:
                said = ends("Learning rate at the end", panel.runs, curves)
                figures.append(Figure(path, f"{said}{panel.title}. Learning rate against updates."))
        return figures
