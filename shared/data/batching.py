"""Batches of examples of similar length under a token budget; their order depends on (seed, epoch) alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

# Bucket width of the first axis when a pool is sorted. With 2, twice as many examples tie and are sorted by the other
# axis: this halves the padding of the other axis and costs the first axis at most one symbol per sentence.
_WIDTH = 2


def epoch_batches(
    lengths: Sequence[NDArray[np.integer]], *, pool: int, seed: int, epoch: int,
    tokens: int | None = None, sentences: int | None = None, equal_lengths: bool = False,
) -> list[Indices]:  # fmt: skip
    """Return the batches of one epoch: shuffle, split into pools, sort each by length, batch it, shuffle the batches.

    Args:
        lengths: for each axis, e.g. (target, source), the length of every example in symbols; the first axis is the
            primary sort key, and the budget counts its symbols.
        pool: number of batches whose examples are sorted together (20 in the paper's code; section B.2.1).
        seed: seed of the run.
        epoch: number of the epoch, from 0.
        tokens: largest number of symbols of the first axis in a batch, padding included; a batch has at least one
            example.
        sentences: number of examples in a batch, as an alternative to ``tokens``.
        equal_lengths: whether all examples of a batch have one length on the first axis, as in the code of Xu et al.
            (2015, section 4.3); the whole epoch is then one pool, so only the last batch of each length can be smaller.

    Returns:
        Arrays of indices; every example is in exactly one array.
    """
    generator = np.random.default_rng((seed, epoch))
    first = lengths[0]
    order = generator.permutation(len(first))
    per_batch = sentences if sentences is not None else max(1, int((tokens or 0) / max(1.0, float(first.mean()))))
    pooled, width = (len(order), 1) if equal_lengths else (pool * per_batch, _WIDTH)
    batches: list[Indices] = []
    for begin in range(0, len(order), pooled):
        members = order[begin : begin + pooled]
        members = members[np.lexsort([*(axis[members] for axis in reversed(lengths[1:])), first[members] // width])]
        cut = np.split(members, _begins(first[members], tokens, per_batch, equal_lengths)[1:])
        batches.extend(cut[i] for i in generator.permutation(len(cut)))
    return batches


def _begins(lengths: NDArray[np.integer], tokens: int | None, sentences: int, equal: bool) -> list[int]:
    """Return the starts of batches with size × longest length ≤ ``tokens`` or, without it, size ≤ ``sentences``."""
    begins, longest = [0], 0
    each = lengths.tolist()
    for i, length in enumerate(each):
        size, longest = i - begins[-1] + 1, max(longest, length)
        full = size * longest > tokens if tokens is not None else size > sentences
        if size > 1 and (full or (equal and length != each[i - 1])):
            begins.append(i)
            longest = length
    return begins


def endless_batches(
    lengths: Sequence[NDArray[np.integer]], *, seed: int, start: int = 0, **options: Any
) -> Iterator[Indices]:
    """Yield batch number ``start`` and all later batches, epoch after epoch, with the options of :func:`epoch_batches`.

    A resumed run starts at the batch where it was killed, and sees the same batches as an uninterrupted run.
    """
    for epoch in itertools.count():
        batches = epoch_batches(lengths, seed=seed, epoch=epoch, **options)
        yield from batches[start:]
        start = max(0, start - len(batches))
