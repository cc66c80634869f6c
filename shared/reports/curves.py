"""The curves of training, read back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from shared.claims.results import RunResults, read_curve

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
