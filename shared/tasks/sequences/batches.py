"""Separate sequences of symbols, whatever they are of: one split of them, and its batches.

Shape letters: N sequences of a split, B of a batch, T symbols of the longest, V symbols of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shared.tasks.batches import Batch, Split


@dataclass(frozen=True)
class SequenceBatch(Batch):
    """What is read, and what is to be predicted at each place.

    Attributes:
        inputs: (B, T) int64, from 0 to V - 1; 0 after the end of a sequence.
        targets: (B, T) int64; undefined where ``scored`` is false.
        scored: (B, T) bool: which targets count.
        mask: (B, T) bool, true at symbols, false at padding; None where all sequences have the same length.
    """

    inputs: Tensor
    targets: Tensor
    scored: Tensor
    mask: Tensor | None = None

    @property
    def tokens(self) -> int:
        """Number of targets that count."""
        return int(self.scored.sum())


@dataclass(frozen=True)
class Sequences(Split):
    """One split.

    Attributes:
        lengths: one array (N,), the symbols of each sequence as it is read, for :mod:`shared.data.batching`.
        batch: from the indices of sequences, and perhaps a seed, to their batch. The seed determines the masked places,
            if the task has any: training passes the run's seed and the number of the batch, evaluation always the same.
    """

    lengths: tuple[NDArray[np.int64]]
    batch: Callable[..., SequenceBatch]
