"""What reports show of one kind of task, given by that kind: reports themselves know none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.claims.outcomes import Decision
from shared.claims.results import RunResults
from shared.reports.document import Block
from shared.reports.exhibits import Exhibit, Results


@dataclass(frozen=True)
class KindReport:
    """What reports of the papers of one kind show beside what all reports show.

    Attributes:
        tables: from the variants of one task to what stands under their scores.
        sections: from decided claims and all variants to what follows the results of all tasks.
        figures: shown of papers that list no figures of their own.
    """

    tables: Callable[[Sequence[RunResults]], Sequence[Block]] = lambda runs: ()
    sections: Callable[[Sequence[Decision], Results], Sequence[Block]] = lambda decisions, results: ()
    figures: Sequence[Exhibit] = ()
