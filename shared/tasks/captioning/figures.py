"""The figures of captioning papers, as objects for their ``report.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shared.reports.curves import LOSS, Curve
from shared.reports.document import Figure
from shared.reports.exhibits import OfVariant, OfVariants, Results, first_run

CURVES = (
    LOSS,
    Curve("bleu", "BLEU-4 of greedy captions of the validation split against updates", "Validation BLEU-4"),
)
"""What validation finds."""


class Overlays(OfVariant):
    """A figure ``overlays_<variant>.png`` of test images lit word by word where attention falls."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant attends and has kept it."""
        from shared.tasks.captioning.overlays import draw_overlays

        run = first_run(results, self.variant)
        path = folder / f"overlays_{self.variant}.png"
        return () if run is None else draw_overlays(run.variant, run.attention(run.seeds[0]), path, self.caption)


class Stopping(OfVariants):
    """A figure ``stopping.png`` of BLEU against likelihood over training, all seeds, a panel for each variant."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if any variant recorded BLEU in training."""
        from shared.tasks.captioning.stopping_figure import SHOWN, draw_stopping

        path = folder / "stopping.png"
        if not draw_stopping([results[variant] for variant in self.shown if variant in results], path):
            return ()
        return [Figure(path, f"BLEU-4 against likelihood over training, both on the validation split. {SHOWN}")]
