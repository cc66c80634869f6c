"""The figures of classification papers, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.reports.curves import ERROR_LABEL, LOSS, Curve
from shared.reports.document import Figure
from shared.reports.exhibits import Exhibit, OfVariant, Results, first_run, run_ones

CURVES = (LOSS, Curve("error", "Share of the validation split classified wrongly, against updates", ERROR_LABEL))
"""What validation finds."""


class HeatTexts(OfVariant):
    """A figure ``heat_<variant>.png`` of test texts whose words are coloured by attention."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention."""
        from shared.tasks.classification.heat import heat_texts

        run = first_run(results, self.variant)
        path = folder / f"heat_{self.variant}.png"
        return () if run is None else heat_texts(run.attention(run.seeds[0]), path, self.caption)


@dataclass(frozen=True)
class HeatRows(Exhibit):
    """A figure ``heat_rows_<variant>_<variant>….png`` of single rows of attention on one test text.

    Attributes:
        caption: says what is compared.
        compared: the variants, below each other; each shows its first seed.
    """

    caption: str
    compared: Sequence[str]

    def variants(self) -> Sequence[str]:
        """Those compared."""
        return self.compared

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if there is something to compare."""
        from shared.tasks.classification.heat import compare_rows

        runs = run_ones(results, self.compared)
        if len(runs) < min(2, len(self.compared)):
            return ()
        sources = {run.variant: run.attention(run.seeds[0]) for run in runs}
        return compare_rows(sources, folder / f"heat_rows_{'_'.join(self.compared)}.png", self.caption)
