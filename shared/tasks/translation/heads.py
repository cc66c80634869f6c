"""Attention of every head of every layer on one sentence, as in Figures 3 to 5 of Vaswani et al. (2017)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from shared.data.tokenizers import BOS, SPECIAL
from shared.reports.figures import WIDTH, drawing, fitting
from shared.reports.weights import bar_of_weights, draw_weights
from shared.tasks.translation.heatmaps import BAR, Pair, longer_sides, read_pairs

Kind = Literal["encoder", "decoder", "cross"]
SAID: dict[Kind, str] = {
    "encoder": "Self-attention of the encoder: from each source word (rows) to all.",
    "decoder": "Self-attention of the decoder: from each target word to come (rows) to those before it; beige: masked.",
    "cross": "Attention of the decoder: from each target word to come (rows) to the source words.",
}
POINTS = 7.5  # of the words
LINE, LETTER = 0.105, 0.06  # inches that a line of them and a letter take
GAP = 0.08  # inches between heatmaps


def draw_heads(source: Path, kind: Kind, path: Path, *, symbols: int = 14) -> bool:
    """Draw the weights of every head as a small heatmap, one layer after the other.

    Words stand at the left of every row of heatmaps and above the first. The darker, the more.

    Args:
        source: heads.npz with ``source_<i>`` (S,), ``target_<i>`` (T,) and, for N layers of H heads,
            ``encoder_<i>`` (N, H, S, S), ``decoder_<i>`` (N, H, T, T), ``cross_<i>`` (N, H, T, S).
        kind: which of the three.
        path: of the PNG.
        symbols: the sentence drawn is the longest kept with at most so many on either side; if all have more,
            the shortest.

    Returns:
        whether the file was there; if not, nothing is drawn.
    """
    pairs = read_pairs(source, ("source", "target", kind))
    if not pairs:
        return False
    pair = pairs[fitting(longer_sides(pairs), symbols)]
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
    return True


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
