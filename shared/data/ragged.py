"""Rows of unequal length in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.storage import load_arrays, save_arrays
from shared.data.tokenizers import PAD


@dataclass(frozen=True)
class RaggedArray:
    """Many symbol sequences in one flat array: sequence i is ``flat[offsets[i]:offsets[i + 1]]``."""

    flat: NDArray[np.integer]
    offsets: NDArray[np.int64]

    @classmethod
    def pack(cls, sequences: Sequence[Sequence[int]], dtype: type[np.integer] = np.int32) -> RaggedArray:
        """Concatenate the sequences into one flat array."""
        offsets = np.cumsum([0, *(len(sequence) for sequence in sequences)], dtype=np.int64)
        return cls(np.fromiter((x for sequence in sequences for x in sequence), dtype, offsets[-1]), offsets)

    def save(self, folder: Path) -> None:
        """Write two ``.npy`` arrays, ``symbols`` and ``offsets``, into ``folder``."""
        save_arrays(folder, {"symbols": self.flat, "offsets": self.offsets})

    @classmethod
    def load(cls, folder: Path) -> RaggedArray:
        """Map the arrays of :meth:`save` into memory.

        Raises:
            ReplicationError: a file is missing or cut short.
        """
        return cls(*load_arrays(folder, ("symbols", "offsets")))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[np.integer]:
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each sequence: (number of sequences,)."""
        return np.diff(self.offsets)

    def select(self, keep: NDArray[np.bool_]) -> RaggedArray:
        """Return the sequences where ``keep``, (number of sequences,) bool, is true."""
        lengths = self.lengths
        offsets = np.concatenate(([0], np.cumsum(lengths[keep])))
        return RaggedArray(self.flat[np.repeat(keep, lengths)], offsets)

    def padded(self, indices: Indices) -> Tensor:
        """Return the sequences of the given indices (B,) as (B, longest) int64 symbols, padded on the right."""
        lengths = self.lengths[indices]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        out = np.full(inside.shape, PAD, dtype=np.int64)
        out[inside] = self.flat[(self.offsets[indices][:, None] + columns)[inside]]
        return torch.from_numpy(out)
