"""The measures of translation beside BLEU and likelihood: brackets of trees, and agreement with true alignments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from shared.metrics.alignment import agreement
from shared.metrics.quantities import Array, Corpus, Example, Measure, entries, field, mean, percentage, share
from shared.metrics.registry import register
from shared.metrics.translation import corpus_bleu


def bracket_f1(sums: Array) -> Array:
    """Harmonic mean of precision and recall, per cent: matched, predicted and gold brackets (..., 3) to (...)."""
    return percentage(np.stack((2 * sums[..., 0], sums[..., 1] + sums[..., 2]), axis=-1))


def bracket_precision(sums: Array) -> Array:
    """Share of the predicted brackets that match, per cent, from the same; 0 where none is predicted."""
    matched, predicted, gold = np.moveaxis(sums, -1, 0)
    return percentage(np.stack((matched, np.maximum(predicted, np.minimum(gold, 1))), axis=-1))


def bracket_recall(sums: Array) -> Array:
    """Share of the gold brackets that match, per cent, from the same."""
    return percentage(sums[..., ::2])


def _links(example: Example) -> Sequence[float] | None:
    return (example.get("alignment") or {}).get("aer")


def _brackets(title: str, unit: str, corpus: Corpus) -> Measure:
    return Measure(title, unit, 2, field("brackets"), corpus, 100.0, better="higher")


_alignment = partial(share, theme="alignment")

register({
    "bleu_lowercase": Measure(
        "BLEU, lowercase", "BLEU", 2, field("bleu_lowercase"), corpus_bleu, 100.0, better="higher"
    ),
    "exact_match": share("Exact match", mean("exact")),
    "bracket_f1": _brackets("Bracket F1", "F1", bracket_f1),
    "bracket_precision": _brackets("Bracket precision", "%", bracket_precision),
    "bracket_recall": _brackets("Bracket recall", "%", bracket_recall),
    "alignment_accuracy": _alignment("Alignment accuracy", entries("alignment", "hits", "words")),
    "alignment_precision": _alignment("Alignment precision", _links, lambda sums: agreement(sums).precision),
    "alignment_recall": _alignment("Alignment recall", _links, lambda sums: agreement(sums).recall),
    "aer": _alignment("AER", _links, lambda sums: agreement(sums).error_rate, "lower"),
}, numbers=("training_operations",))  # fmt: skip
