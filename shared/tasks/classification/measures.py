"""The measures of classification, and of what the attention of classifiers falls on."""

from __future__ import annotations

from shared.metrics.quantities import Direction, Measure, Statistics, mean, percentage, ratio, where_carried
from shared.metrics.registry import register


def _evidence(name: str, per: str) -> Statistics:
    """The ratio of two numbers of a text's evidence, and 1: every text counts alike."""
    return where_carried(lambda example: (example["evidence"][name] / example["evidence"][per], 1.0))


def _attention(title: str, statistics: Statistics, better: Direction | None = None) -> Measure:
    return Measure(title, "", 3, statistics, ratio, 1.0, "attention", better)


def _deleted(title: str, statistics: Statistics) -> Measure:
    return Measure(title, "%", 2, statistics, percentage, 100.0, "attention")


register({
    "accuracy": Measure("Accuracy", "%", 2, mean("correct"), percentage, 100.0, better="higher"),
    "cross_entropy": Measure("Cross-entropy per text, nats", "nats", 3, mean("cross_entropy"), ratio, better="lower"),
    "redundancy": _attention("Redundancy of the rows of A", mean("redundancy", "rows")),
    "focus": _attention("Focus, mean diagonal of AAᵀ", mean("focus", "rows")),
    "penalty": Measure("‖AAᵀ − I‖²", "", 3, mean("penalty", "rows"), ratio, theme="attention"),
    "evidence_mass": _attention("Attention on evidence words", mean("mass", "evidence"), "higher"),
    "evidence_found": _attention("Share of evidence words found", _evidence("found", "words"), "higher"),
    "evidence_chance": _attention("Evidence by chance", _evidence("words", "length")),
    "accuracy_top_deleted": _deleted("Accuracy, words most attended to deleted", mean("top", "deletion")),
    "accuracy_random_deleted": _deleted("Accuracy, random words deleted", mean("random", "deletion")),
    "deletion_effect": _deleted(
        "Deletion effect, random less most attended to",
        where_carried(lambda e: (e["deletion"]["random"] - e["deletion"]["top"], 1.0)),
    ),
})  # fmt: skip
