"""Batches of similar length under a token budget, in an order that depends on nothing but (seed, epoch)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

# Lengths of the first axis that count as equal when a pool is sorted: with two, the other axis can be sorted among
# twice as many examples, which halves its padding and costs the first at most one symbol a sentence.
_WIDTH = 2


def epoch_batches(
    lengths: Sequence[NDArray[np.integer]], *, pool: int, seed: int, epoch: int,
    tokens: int | None = None, sentences: int | None = None, equal_lengths: bool = False,
) -> list[Indices]:  # fmt: skip
    """One epoch's batches: shuffle, cut into pools, sort each pool by length, cut that into batches, shuffle those.

    Args:
        lengths: per axis, e.g. (target, source), the length of every example in symbols; the first is the most
            important for sorting and is what the budget counts.
        pool: how many batches' worth of examples are sorted together (the paper's code: 20; section B.2.1).
        seed: of the run.
        epoch: from 0.
        tokens: budget: most symbols of the first axis in a batch, padding included; at least one example a batch.
        sentences: instead of ``tokens``, the number of examples in a batch.
        equal_lengths: on the first axis all examples of a batch have exactly one length, as in the code of Xu et al.
            (2015, section 4.3); the whole epoch is one pool, so only the last batch of a length can be smaller.

    Returns:
        Index arrays; every example is in exactly one of them.
    """
    if (tokens is None) == (sentences is None):
        raise ValueError("give either tokens or sentences")
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
    """Where batches begin so that size × longest stays within ``tokens`` or, without, the size in ``sentences``."""
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
    lengths: Sequence[NDArray[np.integer]], *, pool: int, seed: int, start: int = 0,
    tokens: int | None = None, sentences: int | None = None, equal_lengths: bool = False,
) -> Iterator[Indices]:  # fmt: skip
    """Batch number ``start`` and all that follow, epoch after epoch; see :func:`epoch_batches`.

    A resumed run asks for the batch it was killed at and sees exactly what it would have seen.
    """
    epoch = 0
    while True:
        batches = epoch_batches(
            lengths, pool=pool, seed=seed, epoch=epoch, tokens=tokens, sentences=sentences,
            equal_lengths=equal_lengths,
        )  # fmt: skip
        yield from batches[start:]
        start = max(0, start - len(batches))
        epoch += 1


def padding_share(lengths: Sequence[NDArray[np.integer]], batches: Sequence[Indices]) -> float:
    """The share of all symbols of all ``batches`` that is padding, every axis counted: 0 is none."""
    padded = sum(int(axis[batch].max()) * len(batch) for axis in lengths for batch in batches)
    return 1 - sum(int(axis[batch].sum()) for axis in lengths for batch in batches) / padded
