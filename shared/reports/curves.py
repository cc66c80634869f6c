"""The curves of training, read back, and gathered in one file."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.claims.results import RunResults, read_curve
from shared.errors import ReplicationError

Points = dict[float, list[float]]
"""Value of x to the values of the seeds at that x."""
Apart = Sequence[tuple[dict[int, float], bool]]
"""For every seed: update to value, and whether the run diverged before its planned end."""
DIVERGED = "the gradient was not finite"
"""The beginning of ``stopped_because`` in the record of a run that diverged."""


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
    """The curve of every seed, and whether the run diverged; empty if no run diverged.

    Runs that stop because validation no longer improves end as planned; runs with a gradient that is not finite do not.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    seeds = []
    for seed, record in run.runs.items():
        if curve := read_curve(run.curve(seed), metric=metric, split=split):
            seeds.append((curve, record["stopped_because"].startswith(DIVERGED)))
    return seeds if any(ended for _, ended in seeds) else []


def read_mean(run: RunResults) -> Points:
    """Update to the mean over the seeds of the loss on validation, which git keeps where it does not keep every seed's.

    Raises:
        ReplicationError: the file has other columns than update and valid_loss.
    """
    path = run.folder / "curve.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames != ["update", "valid_loss"]:
            raise ReplicationError(f"{path} is not a mean curve (update,valid_loss); train again.")
        return {float(row["update"]): [float(row["valid_loss"])] for row in rows}


def write_curves(results: Mapping[str, RunResults], path: Path) -> None:
    """Write what validation recorded in every training, ``variant,seed,update,metric,value``, to six digits, sorted.

    Raises:
        ReplicationError: as :func:`read_curve`.
    """
    rows = sorted(
        (run.variant, seed, step, metric, f"{value:.6g}")
        for run in results.values()
        if not run.members
        for seed in run.seeds
        for metric in _validated(run.curve(seed))
        for step, value in read_curve(run.curve(seed), metric=metric, split="valid").items()
    )
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("variant", "seed", "update", "metric", "value"))
        writer.writerows(rows)


def _validated(path: Path) -> set[str]:
    """What is recorded of the validation split."""
    if not path.exists():
        return set()
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["metric"] for row in csv.DictReader(lines) if row.get("split") == "valid"}
