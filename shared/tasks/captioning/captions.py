"""Scores of captions by kind of image: on every test split, and by the number of objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

import shared.tasks.captioning.measures  # noqa: F401  registers what is shown
from shared.claims.estimates import estimated, having
from shared.claims.results import RunResults
from shared.claims.statistics import generator
from shared.metrics.quantities import Example
from shared.metrics.registry import MEASURES, measure
from shared.reports.document import SPACE, Block, Paragraph, Table, Text, plain
from shared.reports.naming import called

GAINS = ("attention_gain", "attention_contrast", "generated_contrast", "pointing_gain")  # may be below 0
BY = {
    "split": ("split", ("bleu4", "object_recall", "truth", *GAINS)),
    "objects": ("objects in the scene", ("object_recall", "truth", "attention_gain")),
}
"""Field of the examples to what it is called and which metrics are shown by it."""
EXPLAINED = "In brackets: 95 % intervals over images and seeds."


def by_kind_of_image(runs: Sequence[RunResults]) -> list[Block]:
    """Tables of some metrics by test split, and on the split ``test`` by number of objects.

    Args:
        runs: of one task; nothing is shown of those that caption nothing, or where there is but one kind.
    """
    runs = having(runs, "caption")
    tables = [t for field, (_, metrics) in BY.items() for name in metrics for t in _tables(runs, name, field)]
    return [*tables, Paragraph(EXPLAINED)] if tables else []


def _tables(runs: Sequence[RunResults], metric: str, field: str) -> list[Block]:
    """A column for each value of ``field``; empty for fewer than two values, or if no run has the metric."""
    runs = [run for run in runs if metric in run.mean]
    counts = Counter(row[field] for run in runs[:1] for row in _images(run.examples[run.seeds[0]], field))
    if len(counts) < 2:
        return []
    values = list(counts) if field == "split" else sorted(counts)
    rows: list[list[Text]] = [
        [called(run.variant), *(_cell(run, metric, field, value) for value in values)] for run in runs
    ]
    heads = (f"{value} (n = {counts[value]:,})" for value in values)
    return [Table((f"{MEASURES[metric].title} by {BY[field][0]}", *heads), rows, "l" + "r" * len(values))]


def _cell(run: RunResults, metric: str, field: str, value: object) -> str:
    of = measure(metric)
    chosen = [[row for row in _images(examples, field) if row[field] == value] for examples in run.examples.values()]
    found = estimated(of, chosen, generator(run.variant, metric, field, str(value)), str(run.folder))
    ends = np.clip(found.interval(), -of.most if metric in GAINS else 0.0, of.most)
    return f"{plain(found.value, of.digits)} [{f',{SPACE}'.join(plain(end, of.digits) for end in ends)}]"


def _images(examples: Sequence[Example], field: str) -> list[Example]:
    """All that carry ``field``; of the split ``test`` alone unless that is the field."""
    return [row for row in examples if field in row and (field == "split" or row["split"] == "test")]
