"""Numbers of studies against a size, as lines of a figure: which ones, and read from the results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.studies import taken_apart

Curve = tuple[list[float], list[float], list[float], list[float]]
"""Sizes ascending, values there, lower and upper ends of their band."""


@dataclass(frozen=True)
class StudyLines:
    """A quantity that a study measured of several subjects, drawn against a size: a panel of a figure.

    Attributes:
        title: what the figure's caption begins with; those of the same title are panels of one figure.
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

    title: str
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
        found = {}
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
                found[label] = (sizes, line, lower, upper)
        return found


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
