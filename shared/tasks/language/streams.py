"""A text as one stream of symbols in its order, and the batches in which language models read it.

Shape letters: N symbols of the stream, B columns of a batch, T symbols of a segment.

Every symbol is a target, the first one too: before it comes an end symbol, as if another line had ended there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.storage import load_arrays
from shared.data.tokenizers import EOS, PAD
from shared.errors import ReplicationError
from shared.tasks.batches import Batch


@dataclass(frozen=True)
class LanguageBatch(Batch):
    """A segment of each of B columns: each target is the symbol that follows the input at its place.

    Attributes:
        inputs: (B, T) int64; PAD where a column has come to its end.
        targets: (B, T) int64; PAD where nothing is to be scored.
        places: (B, T) int64: which symbol of the stream each target is, -1 where nothing is to be scored.
        reset: whether the columns begin anew, so that the memory must be cleared.
    """

    inputs: Tensor
    targets: Tensor
    places: Tensor
    reset: bool

    @property
    def mask(self) -> Tensor:
        """(B, T) true where the target is to be scored."""
        return self.places >= 0


@dataclass(frozen=True)
class Stream:
    """One split: all its symbols, in the order of the text.

    Attributes:
        symbols: (N,) mapped into memory.
        distances: (N,) how many symbols ago what a symbol repeats stood, 0 where it repeats nothing; None if that is
            not known.
    """

    symbols: NDArray[np.integer]
    distances: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.symbols)

    def evaluation_batches(self, *, columns: int, length: int, warm_up: int = 0) -> Iterator[LanguageBatch]:
        """The whole stream, each symbol scored exactly once, in segments of ``length``; the last may be shorter.

        The columns are consecutive parts of the stream, all of one width, a multiple of ``length``: segments are cut at
        the same places in however many columns. Where the stream does not fill the last ones, they are padded. All but
        the first read the ``warm_up`` symbols before their part first, without scoring them. So no symbol is scored
        with fewer than ``warm_up`` symbols read before it, unless the stream has fewer: with as many as reach a model's
        output, results do not depend on the number of columns.

        Only the first batch has ``reset``.
        """
        warm_up = min(warm_up, len(self) - 1)
        part = -(-(len(self) - warm_up) // (columns * length)) * length
        starts = part * np.arange(columns)[:, None]
        end = min(warm_up + part, len(self))
        for begin in range(0, end, length):
            inside = np.arange(begin, min(begin + length, end))
            scored = (inside >= warm_up) | (starts == 0)
            yield self._batch(starts + inside, scored, reset=begin == 0)

    def windows(self, *, context: int, stride: int, size: int) -> Iterator[LanguageBatch]:
        """The whole stream, each symbol scored exactly once, in overlapping windows that are read independently.

        A window is ``context`` inputs wide (or as wide as the stream, if that is less) and ``stride`` symbols after
        the one before it; only what is new in it is scored. So after the first window, in which all is new, each
        symbol is scored with ``context - stride + 1`` to ``context`` inputs read: with a stride of one always with
        ``context``, as Al-Rfou et al. (2019) evaluate. All batches, of ``size`` windows at most, have ``reset``.
        """
        width = min(context, len(self))
        ends = np.unique(np.arange(width, len(self) + stride, stride).clip(max=len(self)))
        new = np.concatenate(([0], ends[:-1]))
        for first in range(0, len(ends), size):
            group = slice(first, first + size)
            places = ends[group, None] - width + np.arange(width)
            yield self._batch(places, places >= new[group, None], reset=True)

    def epoch_batches(self, *, columns: int, length: int) -> int:
        """How many training batches one pass over the stream has.

        Raises:
            ReplicationError: the stream is too short for a single one.
        """
        count = len(self) // columns // length
        if not count:
            raise ReplicationError(
                f"{columns} columns of segments of {length} symbols need {columns * length:,} symbols, but the "
                f"training text has {len(self):,}; use fewer columns or shorter segments."
            )
        return count

    def training_batch(self, number: int, *, columns: int, length: int, seed: int) -> LanguageBatch:
        """Batch ``number``, from 0, of endless training on the stream; it depends on the arguments alone.

        A pass begins at a random symbol and wraps around to the symbol before it, so each pass cuts other segments. Its
        columns are consecutive parts of the stream. Each batch continues the previous one, and the first has ``reset``.
        A pass leaves out a remainder of fewer than ``columns * length`` symbols, which differ from pass to pass.

        Raises:
            ReplicationError: the stream is too short.
        """
        epoch, segment = divmod(number, self.epoch_batches(columns=columns, length=length))
        begin = int(np.random.default_rng((seed, epoch)).integers(len(self)))
        starts = begin + segment * length + len(self) // columns * np.arange(columns)[:, None]
        places = (starts + np.arange(length)) % len(self)
        return self._batch(places, np.ones_like(places, dtype=bool), reset=segment == 0)

    def training_batches(self, *, columns: int, length: int, seed: int, start: int = 0) -> Iterator[LanguageBatch]:
        """Batch number ``start`` and all that follow, without end; see :meth:`training_batch`.

        A run that resumes inside of a pass needs the memory of its model as well: the batch has no ``reset``.
        """
        for number in itertools.count(start):
            yield self.training_batch(number, columns=columns, length=length, seed=seed)

    @classmethod
    def load(cls, folder: Path) -> Stream:
        """Map the arrays of a prepared split into memory.

        Raises:
            ReplicationError: a file is missing or cut short.
        """
        known = ("distances",) if (folder / "distances.npy").exists() else ()
        return cls(*load_arrays(folder, ("symbols", *known)))

    def _batch(self, places: Indices, scored: NDArray[np.bool_], *, reset: bool) -> LanguageBatch:
        """The symbols at these (B, T) places as targets; places beyond the end are padding."""
        inside = places < len(self)
        scored = scored & inside
        inputs = np.where(places == 0, EOS, self.symbols[np.where(inside, places - 1, 0)])
        parts = (
            np.where(inside, inputs, PAD),
            np.where(scored, self.symbols[np.where(scored, places, 0)], PAD),
            np.where(scored, places, -1),
        )
        read, said, where = (torch.from_numpy(part.astype(np.int64)) for part in parts)
        return LanguageBatch(read, said, where, reset)
