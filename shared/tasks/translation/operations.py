"""Validation loss against the arithmetic that training has cost: quality per operation."""

from __future__ import annotations

import statistics
from pathlib import Path

from shared.claims.results import RunResults
from shared.reports.curves import Points, read_curves
from shared.reports.figures import Runs, draw_curves
from shared.reports.sections import OPERATIONS


def loss_by_operations(runs: Runs, path: Path) -> bool:
    """Draw validation loss against the operations of training so far, on a logarithmic scale.

    Args:
        runs: variants of one task; one without curves, or whose operations were not counted, is left out.
        path: of the PNG.

    Returns:
        whether there was anything to draw.
    """
    y = f"Validation loss (nats per {runs[0].token})"
    return draw_curves(runs, [_curve(run) for run in runs], path, x="Training operations", y=y, powers=True)


def _curve(run: RunResults) -> Points:
    """Operations so far to the seeds' losses then."""
    updates = [record["updates"] for record in run.runs.values()]
    if OPERATIONS not in run.mean or not any(updates):
        return {}
    each = run.mean[OPERATIONS] / statistics.fmean(updates)
    return {each * step: losses for step, losses in read_curves(run, metric="loss", split="valid").items()}
