"""Attention to the text before a word, as a picture and as data for the reader who looks at one word at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.claims.words import number_of
from shared.data.tokenizers import EOS, SPECIAL
from shared.reports.explorer import Attention
from shared.reports.figures import bar_of_weights, draw_weights, drawing
from shared.reports.naming import name_and_id
from shared.tasks.language.sample_texts import LINE_END

SAID = "Weights of each head on the last word and those before it; what stands before the line (‖) is in memory."
BORDER = "‖"  # between memory and segment
MOST_NAMED = 48  # words that there is room for above a picture
NAMED_FROM = 0.1  # the weight of some head from which on a word is named where there is no room for all


@dataclass(frozen=True)
class KeptText:
    """A part of a test text with the attention of its last words.

    Attributes:
        words: (S,).
        memory: how many of them, the first ones, are in memory.
        follows: the word after them.
        weights: (N, H, R, S) of the last R words.
    """

    words: list[str]
    memory: int
    follows: str
    weights: NDArray[np.float32]


def read_kept(source: Path) -> list[KeptText]:
    """The texts in attention.npz, as :func:`shared.tasks.language.attention_maps.save_attention_maps` writes them."""
    if not source.exists():
        return []
    with np.load(source, allow_pickle=False) as arrays:
        count = sum(name.startswith("symbols_") for name in arrays)
        return [
            KeptText(
                [_shown(word) for word in arrays[f"symbols_{i}"]],
                len(arrays[f"symbols_{i}"]) - int(arrays[f"own_{i}"]),
                _shown(arrays[f"next_{i}"].item()),
                arrays[f"weights_{i}"].astype(np.float32),
            )
            for i in range(count)
        ]


def draw_attention(text: KeptText, path: Path) -> None:
    """Draw the weights of every head on the words before the last one: a row for each head, layer by layer."""
    layers, heads, _, words = text.weights.shape
    most = text.weights[:, :, -1].max(axis=(0, 1))
    named = [
        word if words <= MOST_NAMED or weight >= NAMED_FROM else ""
        for word, weight in zip(text.words, most, strict=True)
    ]
    above = 0.055 * max((len(word) for word in named), default=0)
    sides = [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
    with drawing(path, height=0.17 * layers * heads + above + 0.7) as canvas:
        axes = canvas.subplots()
        rows = text.weights[:, :, -1].reshape(layers * heads, words)
        draw_weights(axes, rows, columns=named, rows=sides, size=5.5, square=False)
        axes.tick_params(axis="y", labelsize=8)
        axes.axvline(text.memory - 0.5, color="#D55E00", linewidth=1.2)
        axes.set_xlabel(f"{number_of(words, 'word')}; “{text.follows}” follows", fontsize=8.5)
        bar_of_weights(canvas, [axes])


def maps_of_texts(variant: str, kept: list[KeptText]) -> list[Attention]:
    """From each of the last words to those before it, by text, layer and head; a bar parts memory and segment."""
    maps, model = [], {"Model": name_and_id(variant)}
    for number, text in enumerate(kept, start=1):
        columns = [*text.words[: text.memory], BORDER, *text.words[text.memory :]]
        weights = np.insert(text.weights, text.memory, 0.0, axis=-1).astype(float)
        rows = text.words[-weights.shape[2] :]
        for layer, of_layer in enumerate(weights, start=1):
            for head, of_head in enumerate(of_layer, start=1):
                choices = {"Text": str(number), "Layer": str(layer), "Head": str(head)}
                maps.append(Attention(model | choices, rows, columns, of_head.tolist()))
    return maps


def _shown(word: str) -> str:
    return LINE_END if word == SPECIAL[EOS] else str(word)
