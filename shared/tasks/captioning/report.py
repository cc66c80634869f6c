"""What reports of captioning papers show: scores by kind of image, and whether likelihood and BLEU go together."""

from __future__ import annotations

from collections.abc import Sequence

from shared.claims.results import RunResults
from shared.reports.curves import LearningCurves
from shared.reports.document import Block
from shared.reports.exhibits import KindReport
from shared.tasks.captioning.captions import by_kind_of_image
from shared.tasks.captioning.figures import CURVES
from shared.tasks.captioning.stopping import likelihood_and_bleu


def tables(runs: Sequence[RunResults]) -> list[Block]:
    """Both tables of the variants of one task."""
    return [*by_kind_of_image(runs), *likelihood_and_bleu(runs)]


REPORT = KindReport(tables=tables, figures=(LearningCurves(curves=CURVES),))
