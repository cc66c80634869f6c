"""What a report says of the data of a task, from their card."""

from __future__ import annotations

from typing import Any

from shared.claims.words import number_of
from shared.data.cards import Card
from shared.reports.document import Block, Bullets, Details, Paragraph, Strong, Text

PARTS = {"train_pairs": "pairs", "lines": "lines", "images": "pictures"}
"""Settings of a corpus that take the first examples of a split, and what they count."""


def of_data(card: Card, corpus: Any) -> list[Block]:
    """What the data are, their splits, how much of them is used, and folded what to know of them.

    Args:
        card: of the data.
        corpus: the task's settings of them.
    """
    splits = "; ".join(f"{split}: {what}" for split, what in card.splits.items())
    said = f"{card.title}. {f'The splits: {splits}. ' if splits else ''}"
    if used := _used(corpus):
        said += f"Used are the first {', '.join(used)}."
    if drawn := getattr(corpus, "train_texts", None):
        said += f"Used are {number_of(drawn, 'text')} of train, drawn at random once."
    traps: list[Text] = [*card.traps]
    return [
        Paragraph((Strong("Data:"), f" {said.rstrip()}")),
        *([Details("What to know of these data", [Bullets(traps)])] if traps else ()),
    ]


def _used(corpus: Any) -> list[str]:
    """How many of its first examples are used of every split that is not used whole."""
    found = []
    for name, counted in PARTS.items():
        part = getattr(corpus, name, None) or {}
        splits = {"train": part} if isinstance(part, int) else part
        found += [f"{count:,} {counted} of {split}" for split, count in splits.items()]
    return found
