"""What was recorded in training against updates, a figure for each quantity and each group of variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.reports.curves import read_apart
from shared.reports.document import SPREAD, Figure
from shared.reports.exhibits import OfPanels, Results
from shared.reports.naming import token_of
from shared.reports.panels import chosen_panels, panels

EARLY = " A variant with crosses has a line for each seed: at a cross its training ended before its time."


@dataclass(frozen=True)
class Curve:
    """A quantity that is recorded on the validation split.

    Attributes:
        metric: its name in curve.csv.
        caption: what is drawn.
        label: of the axis, with the unit; ``{token}`` stands for what the variants call their token.
    """

    metric: str
    caption: str
    label: str


LOSS = Curve("loss", "Loss on the validation split against updates", "Validation loss (nats per {token})")
ERROR_LABEL = "Validation error (share of {token}s)"


@dataclass(frozen=True)
class LearningCurves(OfPanels):
    """Figures ``training_<metric>_<panel>.png`` of those panels that have such a curve.

    Attributes:
        panels: as of the base.
        curves: what is drawn.
        diverging: whether training may end before its time, see :func:`shared.reports.figures.training_curves`.
        only: the end of the files' names where a report has several such exhibits; then no others than the panels are
            shown. Without one a task that none of their variants is of is shown whole.
    """

    curves: Sequence[Curve] = (LOSS,)
    diverging: bool = False
    only: str = ""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel and quantity."""
        from shared.reports.figures import training_curves

        figures: list[Figure] = []
        end = f"_{self.only}" if self.only else ""
        for panel in (chosen_panels if self.only else panels)(results, self.panels):
            for curve in self.curves:
                path = folder / f"training_{curve.metric}_{panel.name}{end}.png"
                label = curve.label.format(token=token_of(panel.runs))
                if training_curves(panel.runs, path, metric=curve.metric, label=label, diverging=self.diverging):
                    apart = (read_apart(run, metric=curve.metric, split="valid") for run in panel.runs)
                    early = EARLY if self.diverging and any(apart) else ""
                    figures.append(Figure(path, f"{panel.title}. {curve.caption}: {SPREAD}{early}"))
        return figures


class LearningRates(OfPanels):
    """Figures ``learning_rate_<panel>.png``."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """A figure for each panel that has a curve."""
        from shared.reports.figures import training_curves

        figures = []
        for panel in chosen_panels(results, self.panels):
            path = folder / f"learning_rate_{panel.name}.png"
            if training_curves(panel.runs, path, metric="learning_rate", label="Learning rate", split="train"):
                figures.append(Figure(path, f"{panel.title}. Learning rate against updates."))
        return figures
