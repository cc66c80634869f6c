"""IBM Model 1: word translation probabilities, learned from sentence pairs (Brown et al. 1993).

It is the baseline for alignments by attention, and provides the dictionary of unknown-word replacement.

Shape letters: S source words, T target words, K word pairs that occur together, N links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = Sequence[str]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NULL = 0  # index of the empty source word, which is part of every sentence
UNSEEN = 1e-9  # floor of a word pair's probability in a likelihood
CELLS = 1 << 22  # source-target cells per block, about 200 MiB


@dataclass(frozen=True)
class WordAligner:
    """A trained IBM Model 1 of the target given the source.

    Attributes:
        source, target: word to index; source indices begin at 1, because 0 is the empty word.
        keys: (K,) ``source * len(target) + target`` of the word pairs that occur together, ascending.
        probabilities: (K,) t(target | source).
        counts: (source words + 1,) number of occurrences of each source word.
    """

    source: Mapping[str, int]
    target: Mapping[str, int]
    keys: Ints
    probabilities: Floats
    counts: Ints

    @classmethod
    def train(cls, pairs: Sequence[tuple[Words, Words]], *, iterations: int = 5) -> WordAligner:
        """Train by expectation maximisation from uniform probabilities (Brown et al. 1993, section 4.1).

        Args:
            pairs: source and target words of each sentence; some have target words.
            iterations: number of EM iterations; none of them decreases the likelihood of ``pairs``.
        """
        source = _numbered((word for line, _ in pairs for word in line), 1)
        target = _numbered((word for _, line in pairs for word in line), 0)
        blocks = [_Block.of(block, source, target) for block in _blocks(pairs)]
        keys = np.unique(np.concatenate([block.keys for block in blocks]))
        cells = [(np.searchsorted(keys, block.keys).astype(np.int32)[block.key], block) for block in blocks]
        source_of = keys // len(target)
        probabilities = np.full(len(keys), 1 / len(target))
        for _ in range(iterations):
            expected = np.zeros(len(keys))
            for key, block in cells:
                share = probabilities[key]
                share /= np.repeat(np.add.reduceat(share, block.starts), block.widths)
                expected += np.bincount(key, share, len(keys))
            totals = np.maximum(np.bincount(source_of, expected), np.finfo(float).tiny)
            probabilities = expected / totals[source_of]
        words = np.fromiter((source[word] for line, _ in pairs for word in line), np.int64)
        return cls(source, target, keys, probabilities, np.bincount(words, minlength=len(source) + 1))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> WordAligner:
        """Return the aligner whose :meth:`state` is given."""
        numbered = {"source": _numbered(state["source"], 1), "target": _numbered(state["target"], 0)}
        return cls(**{**state, **numbered})

    def state(self) -> dict[str, Any]:
        """Return the arrays and the lists of words that :meth:`from_state` needs."""
        return vars(self) | {"source": list(self.source), "target": list(self.target)}

    @property
    def parameters(self) -> int:
        """Number of parameters: K."""
        return len(self.keys)

    def table(self, source: Words, target: Words) -> Floats:
        """Return t(target word | source word): (T, 1 + S), the empty word first; 0 for pairs that never occurred."""
        rows = np.array([self.target.get(word, -1) for word in target], dtype=np.int64)
        columns = np.array([NULL, *(self.source.get(word, -1) for word in source)], dtype=np.int64)
        keys = columns * len(self.target) + rows[:, None]
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found = (self.keys[places] == keys) & (rows >= 0)[:, None] & (columns >= 0)
        return np.where(found, self.probabilities[places], 0.0)

    def links(self, source: Words, target: Words) -> Ints:
        """Return the most probable alignment: (N, 2) source and target position of each linked target word.

        The first source word wins ties. A target word has no link if the empty word is more probable, or if it never
        occurred together with any of the source words.
        """
        table = self.table(source, target)
        if not source:
            return np.empty((0, 2), dtype=np.int64)
        best = table[:, 1:].argmax(axis=1)
        highest = table[:, 1:].max(axis=1)
        linked = np.flatnonzero((highest > 0) & (highest >= table[:, NULL]))
        return np.stack((best[linked], linked), axis=1)

    def nll(self, source: Words, target: Words) -> float:
        """Return the negative log-likelihood of the target given the source and both lengths in nats; it is finite."""
        return float(-np.log(np.maximum(self.table(source, target), UNSEEN).mean(axis=1)).sum())

    def translations(self, *, threshold: float = 0.0, count: int = 1) -> dict[str, str]:
        """Return the most probable translation of each source word that passes both limits.

        Args:
            threshold: the least probability of a translation.
            count: the least number of occurrences of the source word.
        """
        source, target = np.divmod(self.keys, len(self.target))
        order = np.lexsort((-self.probabilities, source))
        words, first = np.unique(source[order], return_index=True)
        best = order[first]
        keep = (words != NULL) & (self.counts[words] >= count) & (self.probabilities[best] >= threshold)
        sources, targets = [None, *self.source], list(self.target)
        pairs = zip(words[keep].tolist(), target[best[keep]].tolist(), strict=True)
        return {word: targets[t] for s, t in pairs if (word := sources[s]) is not None}


@dataclass(frozen=True)
class _Block:
    """Sentence pairs as cells: for each target word one cell per source word of its sentence, the empty word first."""

    keys: Ints  # distinct word pairs, ascending
    key: Ints  # (cells,) index into ``keys`` of each cell
    starts: Ints  # (target words,) the first cell of each
    widths: Ints  # (target words,) its number of cells

    @classmethod
    def of(cls, pairs: Sequence[tuple[Words, Words]], source: Mapping[str, int], target: Mapping[str, int]) -> _Block:
        padded = ((NULL, *map(source.__getitem__, line)) for line, _ in pairs)
        columns = np.fromiter((i for line in padded for i in line), np.int64)
        rows = np.fromiter((target[word] for _, line in pairs for word in line), np.int64)
        sizes = np.array([1 + len(line) for line, _ in pairs])
        heights = [len(line) for _, line in pairs]
        widths = np.repeat(sizes, heights)
        starts = np.cumsum(widths) - widths
        shift = np.repeat(np.cumsum(sizes) - sizes, heights) - starts  # from cells to source words
        cells = np.arange(widths.sum()) + np.repeat(shift, widths)
        keys, key = np.unique(columns[cells] * len(target) + np.repeat(rows, widths), return_inverse=True)
        return cls(keys, key, starts, widths)


def _numbered(words: Iterable[str], first: int) -> dict[str, int]:
    return {word: i for i, word in enumerate(dict.fromkeys(words), start=first)}


def _blocks(pairs: Sequence[tuple[Words, Words]]) -> Iterator[Sequence[tuple[Words, Words]]]:
    """Yield consecutive pairs that have target words, in blocks of about :data:`CELLS` cells."""
    usable = [pair for pair in pairs if pair[1]]
    begin = cells = 0
    for end, (source, target) in enumerate(usable, start=1):
        cells += (1 + len(source)) * len(target)
        if cells >= CELLS or end == len(usable):
            yield usable[begin:end]
            begin, cells = end, 0
