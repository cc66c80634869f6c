"""Numbers of studies against a size, as lines of a figure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Figure, slug
from shared.reports.exhibits import Exhibit, Results
from shared.reports.panels import LINES
from shared.reports.studies import taken_apart

Curve = tuple[list[float], list[float], list[float], list[float]]
"""Sizes ascending, values there, lower and upper ends of their band."""


@dataclass(frozen=True)
class StudyPanel:
    """A quantity that a study measured of several subjects, drawn against a size: a panel of a figure.

    Attributes:
        variant: the study.
        quantity: of its metrics ``<subject>.<quantity>_<letter><size>``.
        x: label of the sizes, with their unit.
        y: label of the quantity, with its unit.
        subjects: those drawn, to how the legend names them; a label has one colour in all panels.
        log_x: whether the sizes lie on a logarithmic scale; 0 may be among them.
        log_y: whether the quantity does.
        low: the quantity that is the lower end of the band; without one it is the lowest seed.
        high: likewise the upper end.
    """

    variant: str
    quantity: str
    x: str
    y: str
    subjects: Mapping[str, str]
    log_x: bool = True
    log_y: bool = True
    low: str | None = None
    high: str | None = None

    def curves(self, results: Mapping[str, RunResults]) -> dict[str, Curve]:
        """Label to line, of the subjects that were measured: means over seeds, of the ends of the bands too.

        Raises:
            ReplicationError: the sizes of one subject are of several dimensions.
        """
        run = results.get(self.variant)
        if run is None:
            return {}
        curves = {}
        for subject, label in self.subjects.items():
            seeds = _by_size(run, subject, self.quantity)
            values = {size: statistics.fmean(of) for size, of in seeds.items()}
            low, high = ({size: end(of) for size, of in seeds.items()} for end in (min, max))
            for ends, quantity in ((low, self.low), (high, self.high)):
                for size, of in _by_size(run, subject, quantity).items() if quantity else ():
                    ends[size] = statistics.fmean(of)
            sizes = sorted(values)
            if sizes:
                line, lower, upper = ([of[size] for size in sizes] for of in (values, low, high))
                curves[label] = (sizes, line, lower, upper)
        return curves


@dataclass(frozen=True)
class StudyLines(Exhibit):
    """A figure ``study_<title>.png`` of what studies measured, with a panel for each quantity that was.

    Attributes:
        title: what the caption begins with.
        panels: side by side; a label has one colour in all of them.
    """

    title: str
    panels: Sequence[StudyPanel]

    def variants(self) -> Sequence[str]:
        """The studies."""
        return list(dict.fromkeys(panel.variant for panel in self.panels))

    def columns(self) -> Sequence[str]:
        """What is read of every subject: the quantities, and those that are ends of bands."""
        return [
            f"{panel.variant}: {subject}.{quantity}"
            for panel in self.panels
            for subject in panel.subjects
            for quantity in (panel.quantity, panel.low, panel.high)
            if quantity is not None
        ]

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if anything was measured.

        Raises:
            ReplicationError: it has too many labels; or see :meth:`StudyPanel.curves`.
        """
        from shared.reports.study_figures import draw_panels

        labels = list(dict.fromkeys(label for panel in self.panels for label in panel.subjects.values()))
        if len(labels) > LINES:
            raise ReplicationError(
                f"'{self.title}' has more than {LINES} lines; choose fewer in the paper's report.py."
            )
        measured = [(panel, curves) for panel in self.panels if (curves := panel.curves(results))]
        if not measured:
            return ()
        path = folder / f"study_{slug(self.title)}.png"
        draw_panels(measured, labels, path)
        return [Figure(path, f"{self.title.rstrip('.')}.")]


def _by_size(run: RunResults, subject: str, quantity: str) -> dict[float, list[float]]:
    """Size to the values of all seeds."""
    points: dict[float, list[float]] = defaultdict(list)
    dimensions = set()
    for metrics in run.metrics.values():
        for name, value in metrics.items():
            parts = taken_apart(name)
            if parts is not None and parts[:2] == (subject, quantity) and parts[2] is not None:
                dimensions.add(parts[2][0])
                points[parts[2][1]].append(value)
    if len(dimensions) > 1:
        raise ReplicationError(
            f"{run.variant} measured {subject}.{quantity} by several dimensions ({', '.join(sorted(dimensions))}), "
            "which one line cannot show; give the quantities different names."
        )
    return dict(points)
