"""What training has cost, in operations instead of hours: counted on batches of the shapes that it saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import nn

from shared.data.batching import Indices
from shared.data.parallel import ParallelText
from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations

SAMPLED = 16
"""Batches that are counted, spread evenly over the run."""


def training_operations(
    model: nn.Module, text: ParallelText, order: Iterator[Indices], *, updates: Sequence[int], accumulate: int
) -> dict[str, float]:  # fmt: skip
    """Count the operations of training from forward passes over single sentences as long as its batches were.

    No product is of different sentences, so that a batch of B has B times as many.

    Args:
        model: that was trained, on the CPU, called as ``model(source, source_mask, target)``.
        text: what it was trained on.
        order: the indices of its batches, from the first on.
        updates: how many were made, by each run if there were several: those of an ensemble.
        accumulate: batches that made one update.

    Returns:
        ``training_operations``: floating-point operations of all updates, two per multiply-add, the backward pass
        taken as twice the forward pass and padding included; ``forward_multiply_adds_per_label``, by labels that are
        not padding.
    """
    batches = max(updates) * accumulate
    chosen = set(np.linspace(0, batches - 1, min(SAMPLED, batches)).round().astype(int).tolist())
    multiply_adds, labels = 0, 0
    for indices in (batch for number, batch in enumerate(islice(order, batches)) if number in chosen):
        lengths = [side.lengths[indices] + 1 for side in (text.source, text.target)]  # and the end symbol
        source, target = (torch.ones(1, int(side.max()), dtype=torch.long) for side in lengths)
        with torch.no_grad():
            multiply_adds += len(indices) * count_operations(model, source, source > 0, target)
        labels += int(lengths[1].sum())
    per_update = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * accumulate * multiply_adds / len(chosen)
    return {
        "training_operations": per_update * sum(updates),
        "forward_multiply_adds_per_label": multiply_adds / labels,
    }
