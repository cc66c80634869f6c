"""Attention of translation models as data, for the reader who looks at one word at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shared.reports.explorer import Attention
from shared.reports.naming import name_and_id
from shared.tasks.translation.heads import Kind, words_of
from shared.tasks.translation.heatmaps import KEPT, read_pairs

SENTENCES = 4  # of each variant
BY_HEAD: dict[Kind, str] = {
    "encoder": "within the source, by head",
    "decoder": "within the target, by head",
    "cross": "to the source, by head",
}
SYMBOLS = 40  # of a sentence's longer side: more would be no pleasure to read


def maps_of_sentences(sources: Mapping[str, Path]) -> list[Attention]:
    """From every target word to the source words, by model and sentence.

    Args:
        sources: variant to its attention.npz, as :func:`shared.tasks.translation.heatmaps.read_pairs` reads it; those
            that are not there are left out.
    """
    maps = []
    for variant, source in sources.items():
        pairs = [pair for pair in read_pairs(source, KEPT) if max(pair["weights"].shape) <= SYMBOLS]
        for number, pair in enumerate(pairs[:SENTENCES], start=1):
            choices = {"Model": name_and_id(variant), "Attention": "to the source", "Sentence": str(number)}
            rows, columns = [*map(str, pair["target"])], [*map(str, pair["source"])]
            maps.append(Attention(choices, rows, columns, pair["weights"].astype(float).tolist()))
    return maps


def maps_of_heads(variant: str, source: Path, kind: Kind) -> list[Attention]:
    """The attention of one kind, by sentence, layer and head.

    Args:
        variant: whose.
        source: heads.npz, as :func:`shared.tasks.translation.heads.draw_heads` reads it.
        kind: of the encoder, of the decoder, or from the one to the other.
    """
    maps = []
    model = {"Model": name_and_id(variant), "Attention": BY_HEAD[kind]}
    for number, pair in enumerate(read_pairs(source, ("source", "target", kind)), start=1):
        columns, rows = words_of(pair, kind)
        for layer, heads in enumerate(pair[kind].astype(np.float64), start=1):
            for head, weights in enumerate(heads, start=1):
                choices = model | {"Sentence": str(number), "Layer": str(layer), "Head": str(head)}
                maps.append(Attention(choices, rows, columns, weights.tolist()))
    return maps
