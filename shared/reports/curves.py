"""The curves of training, read back."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError

Points = dict[float, list[float]]
"""x to the seeds' values there."""
Apart = Sequence[tuple[dict[int, float], bool]]
"""Of every seed update to value, and whether it ended before its time."""
DIVERGED = "the gradient was not finite"
"""What the reason of a run that ended so begins with, in the record of its training."""


def read_curves(run: RunResults, *, metric: str, split: str) -> Points:
    """Update to the recorded values there, one per seed that has one; empty if there are no curves.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    points: Points = defaultdict(list)
    for seed in run.seeds:
        for step, value in read_curve(run.curve(seed), metric=metric, split=split).items():
            points[step].append(value)
    return dict(points)


def read_apart(run: RunResults, *, metric: str, split: str) -> Apart:
    """The curve of every seed; none at all unless one of them made fewer updates than it was to make.

    Those that end when validation no longer gets better are meant to; those whose gradient was not finite are not.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    seeds = []
    for seed, record in run.runs.items():
        if curve := read_curve(run.curve(seed), metric=metric, split=split):
            seeds.append((curve, record["stopped_because"].startswith(DIVERGED)))
    return seeds if any(ended for _, ended in seeds) else []


def read_curve(path: Path, *, metric: str, split: str) -> dict[int, float]:
    """Update to what was recorded there in the training of one seed; empty if there is no such file.

    What is not a finite number, as where a training diverged, is left out.

    Raises:
        ReplicationError: it has other columns than step, split, metric, value.
    """
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames != ["step", "split", "metric", "value"]:
            raise ReplicationError(f"{path} is not a training curve (step,split,metric,value); train again.")
        return {
            int(row["step"]): float(row["value"])
            for row in rows
            if row["split"] == split and row["metric"] == metric and math.isfinite(float(row["value"]))
        }
