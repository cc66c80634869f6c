"""What training has cost, in operations instead of hours: counted on batches of the shapes that it saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import nn

from shared.data.batching import Indices
from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations
from shared.tasks.translation.corpus import ParallelText

SAMPLED = 16
"""Batches that are counted, from those of short sentences to those of long ones."""


def training_operations(
    model: nn.Module, text: ParallelText, order: Iterator[Indices], *, updates: Sequence[int], accumulate: int
) -> dict[str, float]:  # fmt: skip
    """Count the operations of training from forward passes over single sentences as long as its batches were.

    No product combines different sentences, so a batch of B sentences has B times the operations of one. The operations
    are nearly proportional to the symbols of a batch, padding included, so the total is extrapolated from the counted
    batches by symbols. The counted batches are chosen by length and not at regular updates, because lengths vary so
    much that the totals of runs of equal cost then differed by 15 %.

    Args:
        model: that was trained, on the CPU, called as ``model(source, source_mask, target)``.
        text: what it was trained on.
        order: the indices of its batches, from the first on.
        updates: number of updates of each run; an ensemble has several runs.
        accumulate: batches that made one update.

    Returns:
        ``training_operations``: floating-point operations of all updates, two per multiply-add, the backward pass
        taken as twice the forward pass and padding included; ``forward_multiply_adds_per_label``, by labels that are
        not padding.
    """
    batches = max(updates) * accumulate
    sides = [side.lengths + 1 for side in (text.source, text.target)]  # and the end symbol
    shapes = (
        (len(indices), *(side[indices].max() for side in sides), sides[1][indices].sum())
        for indices in islice(order, batches)
    )
    rows, sources, targets, labels = np.fromiter(shapes, np.dtype((np.int64, 4)), batches).T
    by_length = np.argsort(sources + targets, kind="stable")
    sampled = min(SAMPLED, batches)
    chosen = by_length[((np.arange(sampled) + 0.5) * batches / sampled).astype(int)]
    counted = sum(int(rows[i]) * _forward(model, int(sources[i]), int(targets[i])) for i in chosen)
    symbols = rows * (sources + targets)
    multiply_adds = counted * float(symbols.sum() / symbols[chosen].sum())
    per_update = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * multiply_adds / max(updates)
    return {
        "training_operations": per_update * sum(updates),
        "forward_multiply_adds_per_label": multiply_adds / float(labels.sum()),
    }


def _forward(model: nn.Module, source_length: int, target_length: int) -> int:
    """Multiply-adds for one pair."""
    source, target = (torch.ones(1, length, dtype=torch.long) for length in (source_length, target_length))
    with torch.no_grad():
        return count_operations(model, source, source > 0, target)
