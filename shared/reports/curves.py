"""The curves of training, read back."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from shared.claims.results import RunResults
from shared.errors import ReplicationError

Points = dict[float, list[float]]
"""x to the seeds' values there."""


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


def read_curve(path: Path, *, metric: str, split: str) -> dict[int, float]:
    """Update to what was recorded there in the training of one seed; empty if there is no such file.

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
            if row["split"] == split and row["metric"] == metric
        }
