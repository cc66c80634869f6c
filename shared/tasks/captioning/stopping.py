"""Whether likelihood and BLEU on the validation split go together over training: why Xu et al. (2015) stop by BLEU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.claims.results import RunResults, read_curve
from shared.reports.document import Block, Paragraph, Table, Text, code, over_seeds

FEWEST = 3  # validations that a correlation is of
TABLE = (
    *("BLEU-4 on the validation split", "Highest in training", "Where likelihood is highest"),
    *("Correlation with likelihood", "In the last third"),
)
EXPLAINED = (
    "BLEU-4 and log-likelihood of every validation of the training, both on the validation split; their correlation is "
    "Pearson's. All numbers are means over seeds, in brackets the lowest and the highest seed."
)


@dataclass(frozen=True)
class Course:
    """The validations in the training of one seed, in their order.

    Attributes:
        progress: (n,) updates as a share of those at the last validation.
        likelihood: (n,) mean log-likelihood of a token, nats.
        bleu: (n,) BLEU-4.
    """

    progress: NDArray[np.float64]
    likelihood: NDArray[np.float64]
    bleu: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path) -> Course:
        """From a training curve; empty if it has not both or does not exist.

        Raises:
            ReplicationError: it is no training curve.
        """
        loss, bleu = (read_curve(path, metric=metric, split="valid") for metric in ("loss", "bleu"))
        steps = sorted(loss.keys() & bleu.keys())
        return cls(
            progress=np.array(steps, dtype=np.float64) / max(steps, default=1),
            likelihood=np.array([-loss[step] for step in steps]),
            bleu=np.array([bleu[step] for step in steps]),
        )

    def after(self, share: float) -> Course:
        """What comes after this share of the training."""
        late = self.progress > share
        return Course(self.progress[late], self.likelihood[late], self.bleu[late])

    @property
    def highest(self) -> float:
        """The highest BLEU."""
        return float(self.bleu.max())

    @property
    def at_likeliest(self) -> float:
        """BLEU where the likelihood is highest."""
        return float(self.bleu[self.likelihood.argmax()])

    @property
    def correlation(self) -> float | None:
        """Pearson's, of likelihood and BLEU; None of too few validations, or if either never changes."""
        if len(self.bleu) < FEWEST or np.ptp(self.bleu) == 0 or np.ptp(self.likelihood) == 0:
            return None
        return float(np.corrcoef(self.likelihood, self.bleu)[0, 1])


def courses(run: RunResults) -> list[Course]:
    """Those of all seeds that recorded both BLEU and likelihood."""
    return [course for seed in run.seeds if len((course := Course.read(run.curve(seed))).bleu)]


def likelihood_and_bleu(runs: Sequence[RunResults]) -> list[Block]:
    """A table of how they go together in the training of each variant; nothing where BLEU was not recorded."""
    rows: list[list[Text]] = []
    for run in runs:
        if found := courses(run):
            late = [course.after(2 / 3) for course in found]
            rows.append([
                code(run.variant),
                over_seeds([course.highest for course in found], 2),
                over_seeds([course.at_likeliest for course in found], 2),
                over_seeds([course.correlation for course in found], 2, sign=True),
                over_seeds([course.correlation for course in late], 2, sign=True),
            ])  # fmt: skip
    return [Table(TABLE, rows, "lrrrr"), Paragraph(EXPLAINED)] if rows else []
