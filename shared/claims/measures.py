"""The quantities that claims and reports speak of, and how each follows from per-example statistics.

A measure takes a few additive numbers from every test example; the corpus value is a function of their sums.
So a bootstrap can recompute any corpus-level score from resampled examples by one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.metrics.translation import corpus_bleu

Array = NDArray[np.float64]
Example = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A named quantity.

    Attributes:
        title: column heading, with the unit or token it is per.
        unit: of the value and of differences, as printed after a number ("" for a share).
        digits: after the decimal point.
        statistics: an example's additive numbers (C,), or None where the example has none (counts as zeros).
            None for a measure that is only known per run (read from metrics.json).
        corpus: sums (..., C) to values (...); not a number where the sums are empty.
        most: the largest value there is; the least is 0.
    """

    title: str
    unit: str = ""
    digits: int = 3
    statistics: Callable[[Example], Sequence[float] | None] | None = None
    corpus: Callable[[Array], Array] | None = None
    most: float = math.inf


def ratio(sums: Array) -> Array:
    """Ratio of two sums: (..., 2) to (...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def alignment_error_rate(sums: Array) -> Array:
    """AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|) from summed counts in this order: (..., 4) to (...)."""
    return 1.0 - ratio(np.stack((sums[..., 0] + sums[..., 1], sums[..., 2] + sums[..., 3]), axis=-1))


def alignment_precision(sums: Array) -> Array:
    """Precision |A∩P| / |A| from summed counts |A∩S|, |A∩P|, |A|, |S|: (..., 4) to (...)."""
    return ratio(sums[..., 1:3])


def alignment_recall(sums: Array) -> Array:
    """Recall |A∩S| / |S| from the same: (..., 4) to (...)."""
    return ratio(sums[..., ::3])


def perplexity(sums: Array) -> Array:
    """exp(mean negative log-likelihood) from summed nats and tokens: (..., 2) to (...)."""
    return np.asarray(np.exp(ratio(sums)))


def _field(name: str) -> Callable[[Example], Sequence[float] | None]:
    return lambda example: example.get(name)


def _mean(name: str) -> Callable[[Example], Sequence[float] | None]:
    return lambda example: (example[name], 1.0) if name in example else None


def _alignment(*names: str) -> Callable[[Example], Sequence[float] | None]:
    def statistics(example: Example) -> Sequence[float] | None:
        found = example.get("alignment")
        return None if found is None else [found[name] for name in names]

    return statistics


def _nll(example: Example) -> Sequence[float] | None:
    return (example["nll"], example["tokens"]) if "nll" in example else None


def _error_counts(example: Example) -> Sequence[float] | None:
    return (example.get("alignment") or {}).get("aer")


MEASURES: dict[str, Measure] = {
    "bleu": Measure("BLEU", "BLEU", 2, _field("bleu"), corpus_bleu, 100.0),
    "bleu_replaced": Measure("BLEU, UNK replaced", "BLEU", 2, _field("bleu_replaced"), corpus_bleu, 100.0),
    "bleu_tokenized": Measure(
        "BLEU, Moses-tokenized",
        "BLEU",
        2,
        _field("bleu_tokenized"),
        partial(corpus_bleu, smooth=False),
        100.0,
    ),
    "bleu_tokenized_replaced": Measure(
        "BLEU, Moses-tokenized, UNK replaced",
        "BLEU",
        2,
        _field("bleu_tokenized_replaced"),
        partial(corpus_bleu, smooth=False),
        100.0,
    ),
    "bleu_known": Measure("BLEU, no UNK", "BLEU", 2, _field("bleu_known"), corpus_bleu, 100.0),
    "chrf": Measure("chrF", "chrF", 2, most=100.0),
    "nll_per_token": Measure("NLL per {token}, nats", "nats", 3, _nll, ratio),
    "nll_per_sentence": Measure("NLL per sentence, nats", "nats", 2, _mean("nll"), ratio),
    "perplexity": Measure("Perplexity per {token}", "", 2, _nll, perplexity),
    "exact_match": Measure("Exact match", "", 3, _mean("exact"), ratio, 1.0),
    "alignment_accuracy": Measure("Alignment accuracy", "", 3, _alignment("hits", "words"), ratio, 1.0),
    "alignment_precision": Measure("Alignment precision", "", 3, _error_counts, alignment_precision, 1.0),
    "alignment_recall": Measure("Alignment recall", "", 3, _error_counts, alignment_recall, 1.0),
    "aer": Measure("AER", "", 3, _error_counts, alignment_error_rate, 1.0),
}
"""By name, in the order in which reports show them. ``{token}`` stands for what the run calls its token."""


def measure(name: str) -> Measure:
    """The measure called ``name``; a name not in `MEASURES` is a number that only metrics.json holds."""
    return MEASURES.get(name) or Measure(name.replace("_", " "))
