"""The measures of classification, and of what the attention of classifiers falls on."""

from __future__ import annotations

from functools import partial

from shared.metrics.quantities import Measure, Statistics, mean, per_cent, ratio, share, where_carried
from shared.metrics.registry import register


def _evidence(name: str, per: str) -> Statistics:
    """The ratio of two numbers of a text's evidence, and 1: every text counts alike."""
    return where_carried(lambda example: (example["evidence"][name] / example["evidence"][per], 1.0))


_attention = partial(share, theme="attention")
_deleted = partial(per_cent, better=None, theme="attention")
register({
    "accuracy": per_cent("Accuracy", mean("correct")),
    "cross_entropy": Measure("Cross-entropy per text, nats", "nats", 3, mean("cross_entropy"), ratio, better="lower"),
    "redundancy": _attention("Redundancy of the rows of A", mean("redundancy", "rows"), better=None),
    "focus": _attention("Focus, mean diagonal of AAᵀ", mean("focus", "rows"), better=None),
    "penalty": Measure("‖AAᵀ − I‖²", "", 3, mean("penalty", "rows"), ratio, theme="attention"),
    "evidence_mass": _attention("Attention on evidence words", mean("mass", "evidence")),
    "evidence_found": _attention("Share of evidence words found", _evidence("found", "words")),
    "evidence_chance": _attention("Evidence by chance", _evidence("words", "length"), better=None),
    "accuracy_top_deleted": _deleted("Accuracy, words most attended to deleted", mean("top", "deletion")),
    "accuracy_random_deleted": _deleted("Accuracy, random words deleted", mean("random", "deletion")),
    "deletion_effect": _deleted(
        "Deletion effect, random less most attended to",
        where_carried(lambda e: (e["deletion"]["random"] - e["deletion"]["top"], 1.0)),
    ),
})  # fmt: skip
