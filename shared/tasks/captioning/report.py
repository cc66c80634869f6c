"""What reports of captioning papers show: scores by kind of image, and whether likelihood and BLEU go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.claims.results import RunResults, read_curve
from shared.metrics.registry import MEASURES, measure
from shared.reports.curves import LOSS, Curve, LearningCurves
from shared.reports.document import Block, Paragraph, Table, Text, code, over_seeds, plain, with_ends
from shared.reports.exhibits import KindReport, examples_with, table_by

Floats = NDArray[np.float64]
GAINS = ("attention_gain", "attention_contrast", "generated_contrast", "pointing_gain")  # may be below 0
BY = {"split": ("bleu4", "object_recall", "truth", *GAINS), "objects": ("object_recall", "truth", "attention_gain")}
"""Field of the examples to the metrics that are shown by it."""
CALLED = {"split": "split", "objects": "objects in the scene"}
INTERVALS = "In brackets: 95 % intervals over images and seeds."
FEWEST = 3  # validations that a correlation is of
STOPPING = (
    *("BLEU-4 on the validation split", "Highest in training", "Where likelihood is highest"),
    *("Correlation with likelihood", "In the last third"),
)
STOPPING_EXPLAINED = (
    "BLEU-4 and log-likelihood of every validation of the training, both on the validation split; their correlation is "
    "Pearson's. All numbers are means over seeds, in brackets the lowest and the highest seed."
)
CURVES = (LOSS, Curve("bleu", "BLEU-4 of greedy captions of the validation split against updates", "Validation BLEU-4"))
"""What validation finds."""


def by_kind_of_image(runs: Sequence[RunResults]) -> list[Block]:
    """Tables of some metrics by test split, and on the split ``test`` by number of objects.

    Args:
        runs: of one task; nothing is shown of those that caption nothing, or where there is but one kind of image.
    """
    from shared.claims.estimates import runs_with  # brings scipy

    runs, tables = runs_with(runs, "caption"), list[Block]()
    for field, metrics in BY.items():
        for metric in metrics:
            shown = [run for run in runs if metric in run.mean]
            rows = [row for run in shown[:1] for row in examples_with(run.examples[run.seeds[0]], field)]
            counts = Counter(row[field] for row in rows)
            if len(counts) > 1:
                ordered = counts if field == "split" else dict(sorted(counts.items()))
                head = f"{MEASURES[metric].title} by {CALLED[field]}"
                tables.append(table_by(head, ordered, shown, partial(_score, metric=metric, field=field)))
    return [*tables, Paragraph(INTERVALS)] if tables else []


def _score(run: RunResults, value: object, *, metric: str, field: str) -> str:
    """A metric of the images whose ``field`` has a value, with its interval."""
    from shared.claims.estimates import estimate_examples  # brings scipy
    from shared.claims.statistics import generator

    of_metric = measure(metric)
    images = [[row for row in examples_with(of, field) if row[field] == value] for of in run.examples.values()]
    found = estimate_examples(of_metric, images, generator(run.variant, metric, field, str(value)), str(run.folder))
    ends = np.clip(found.interval(), -of_metric.most if metric in GAINS else 0.0, of_metric.most)
    return with_ends(plain(found.value, of_metric.digits), (plain(end, of_metric.digits) for end in ends))


class Course(NamedTuple):
    """The n validations in the training of one seed, in their order."""

    progress: Floats  # updates as a share of those at the last validation
    likelihood: Floats  # mean log-likelihood of a token, nats
    bleu: Floats

    def after(self, share: float) -> Course:
        """What comes after this share of the training."""
        late = self.progress > share
        return Course(*(values[late] for values in self))

    @property
    def correlation(self) -> float | None:
        """Pearson's, of likelihood and BLEU; None of too few validations, or if either never changes."""
        if len(self.bleu) < FEWEST or np.ptp(self.bleu) == 0 or np.ptp(self.likelihood) == 0:
            return None
        return float(np.corrcoef(self.likelihood, self.bleu)[0, 1])


def courses(run: RunResults) -> list[Course]:
    """Those of all seeds that recorded both BLEU and likelihood.

    Raises:
        ReplicationError: a file is no training curve.
    """
    found = []
    for seed in run.seeds:
        loss, bleu = (read_curve(run.curve(seed), metric=metric, split="valid") for metric in ("loss", "bleu"))
        if steps := sorted(loss.keys() & bleu.keys()):
            likelihood, scores = np.array([-loss[step] for step in steps]), np.array([bleu[step] for step in steps])
            found.append(Course(np.array(steps, dtype=np.float64) / max(*steps, 1), likelihood, scores))
    return found


def likelihood_and_bleu(runs: Sequence[RunResults]) -> list[Block]:
    """Whether likelihood and BLEU go together in the training of each variant: why Xu et al. (2015) stop by BLEU."""
    rows: list[list[Text]] = []
    for run in runs:
        if found := courses(run):
            late = [course.after(2 / 3) for course in found]
            rows.append([
                code(run.variant),
                over_seeds([float(course.bleu.max()) for course in found], 2),
                over_seeds([float(course.bleu[course.likelihood.argmax()]) for course in found], 2),
                over_seeds([course.correlation for course in found], 2, sign=True),
                over_seeds([course.correlation for course in late], 2, sign=True),
            ])  # fmt: skip
    return [Table(STOPPING, rows, "lrrrr"), Paragraph(STOPPING_EXPLAINED)] if rows else []


REPORT = KindReport(
    tables=lambda runs: [*by_kind_of_image(runs), *likelihood_and_bleu(runs)], figures=(LearningCurves(curves=CURVES),)
)
