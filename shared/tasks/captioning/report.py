"""What reports of captioning papers show: scores by kind of image, and whether likelihood and BLEU go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

import shared.tasks.captioning.measures  # noqa: F401  registers what is shown
from shared.claims.estimates import estimate_examples, runs_with
from shared.claims.results import RunResults
from shared.claims.statistics import generator
from shared.metrics.quantities import Example
from shared.metrics.registry import MEASURES, measure
from shared.reports.curves import LearningCurves
from shared.reports.document import SPACE, Block, Paragraph, Table, Text, plain
from shared.reports.exhibits import KindReport
from shared.reports.naming import name_and_code
from shared.tasks.captioning.figures import CURVES, likelihood_and_bleu

GAINS = ("attention_gain", "attention_contrast", "generated_contrast", "pointing_gain")  # may be below 0
BY = {"split": ("bleu4", "object_recall", "truth", *GAINS), "objects": ("object_recall", "truth", "attention_gain")}
"""Field of the examples to the metrics that are shown by it."""
CALLED = {"split": "split", "objects": "objects in the scene"}
INTERVALS = "In brackets: 95 % intervals over images and seeds."


def by_kind_of_image(runs: Sequence[RunResults]) -> list[Block]:
    """Tables of some metrics by test split, and on the split ``test`` by number of objects.

    Args:
        runs: of one task; nothing is shown of those that caption nothing, or where there is but one kind of image.
    """
    runs, tables = runs_with(runs, "caption"), list[Block]()
    for field, metrics in BY.items():
        for metric in metrics:
            shown = [run for run in runs if metric in run.mean]
            counts = Counter(row[field] for run in shown[:1] for row in _images(run.examples[run.seeds[0]], field))
            values = list(counts) if field == "split" else sorted(counts)
            if len(values) > 1:
                head = f"{MEASURES[metric].title} by {CALLED[field]}"
                heads = (f"{value} (n = {counts[value]:,})" for value in values)
                rows: list[list[Text]] = [
                    [name_and_code(run.variant), *(_score(run, metric, field, value) for value in values)]
                    for run in shown
                ]
                tables.append(Table((head, *heads), rows, "l" + "r" * len(values)))
    return [*tables, Paragraph(INTERVALS)] if tables else []


def _score(run: RunResults, metric: str, field: str, value: object) -> str:
    """A metric of the images whose ``field`` has a value, with its interval."""
    of = measure(metric)
    images = [[row for row in _images(examples, field) if row[field] == value] for examples in run.examples.values()]
    found = estimate_examples(of, images, generator(run.variant, metric, field, str(value)), str(run.folder))
    ends = np.clip(found.interval(), -of.most if metric in GAINS else 0.0, of.most)
    return f"{plain(found.value, of.digits)} [{f',{SPACE}'.join(plain(end, of.digits) for end in ends)}]"


def _images(examples: Sequence[Example], field: str) -> list[Example]:
    """All that carry ``field``; of the split ``test`` alone unless that is the field."""
    return [row for row in examples if field in row and (field == "split" or row["split"] == "test")]


REPORT = KindReport(
    tables=lambda runs: [*by_kind_of_image(runs), *likelihood_and_bleu(runs)], figures=(LearningCurves(curves=CURVES),)
)
