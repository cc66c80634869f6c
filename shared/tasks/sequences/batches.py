"""Separate sequences of symbols, whatever they are of: their batches, and what a prepared task of them has.

Shape letters: N sequences of a split, B of a batch, T symbols of the longest, V symbols of the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.tasks.batches import Batch, training_order, validation_batches
from shared.tasks.sequences.settings import SequenceTraining


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


class PreparedSequences(ABC):
    """What the prepare stage leaves for training and evaluation.

    Attributes:
        unit: what a symbol is, in the singular: "pixel", "residue", "symbol".
    """

    unit: ClassVar[str]

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, bool]:
        """V, with special and start symbols; and whether each symbol is predicted from those before it."""

    @property
    def symbols(self) -> int:
        """V."""
        return self.sizes[0]

    @abstractmethod
    def split(self, name: str) -> SequenceSplit:
        """``train``, ``valid`` or a test split."""

    def batches(self, training: SequenceTraining, seed: int) -> Callable[[int], Iterator[SequenceBatch]]:
        """From a batch's number to that batch of training and all that follow it.

        Seed and batch number determine the masks, so a continued run has the same ones.
        """
        train = self.split("train")
        order = training_order(train, training.batch, seed)
        return lambda start: (
            train.batch(indices, (seed, number)) for number, indices in enumerate(order(start=start), start)
        )

    def valid(self, training: SequenceTraining) -> list[SequenceBatch]:
        """The batches of the validation split."""
        return validation_batches(self.split("valid"))
