"""Separate sequences of symbols, whatever they are of: their batches, and what a prepared task of them has.

Shape letters: N sequences of a split, B of a batch, T symbols of the longest, V symbols of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices


@dataclass(frozen=True)
class SequenceBatch:
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

    def to(self, device: torch.device | str) -> SequenceBatch:
        """The same batch on another device."""
        inputs, targets, scored = (
            part.to(device, non_blocking=True) for part in (self.inputs, self.targets, self.scored)
        )
        mask = None if self.mask is None else self.mask.to(device, non_blocking=True)
        return SequenceBatch(inputs, targets, scored, mask)


class SequenceSplit(Protocol):
    """One split of a prepared task."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """(N,) symbols of each sequence as it is read, for :mod:`shared.data.batching`."""
        ...

    def batch(self, indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        """The sequences with these indices.

        Args:
            indices: from 0 to N - 1.
            seed: determines the masked places, if the task has any. Training passes the run's seed and the number of
                the batch; evaluation always passes the same seed.
        """
        ...


class PreparedSequences(Protocol):
    """What the prepare stage leaves for training and evaluation."""

    @property
    def symbols(self) -> int:
        """V, with special and start symbols."""
        ...

    @property
    def unit(self) -> str:
        """What a symbol is, in the singular: "pixel", "residue", "symbol"."""
        ...

    def split(self, name: str) -> SequenceSplit:
        """``train``, ``valid`` or a test split."""
        ...
