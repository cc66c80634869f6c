"""Word alignments: parsing of gold links, hard links from attention weights, and the agreement of the two.

A link is a pair (source position, target position), both counted from 0; links are arrays (N, 2) without duplicates.
A gold link is sure or possible, and every sure link is possible too (Och & Ney 2003).

Shape letters: S source length, T target length, N links, W target words that have a gold link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared.errors import ReplicationError

Links = NDArray[np.int64]
Floats = NDArray[np.float64]
Method = Literal["argmax", "threshold"]
"""How weights become links, see :func:`hard_alignment`."""
THRESHOLD = 0.5
_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")


@dataclass(frozen=True)
class GoldAlignment:
    """Gold links of one sentence pair."""

    sure: Links
    possible: Links  # includes the sure links

    @classmethod
    def of(cls, sure: Iterable[tuple[int, int]], only_possible: Iterable[tuple[int, int]] = ()) -> GoldAlignment:
        """Build it from pairs in any order; a link that is in both arguments is sure."""
        sure = set(sure)
        return cls(as_links(sure), as_links(sure.union(only_possible)))


class Agreement(NamedTuple):
    """Agreement of predicted links with gold links; every field has the leading shape of the counts."""

    precision: Floats  # share of the predicted links that are possible
    recall: Floats  # share of the sure links that were predicted
    error_rate: Floats


def as_links(pairs: Iterable[tuple[int, int]]) -> Links:
    """Return an array (N, 2) of distinct links, sorted by source position and then by target position."""
    return np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)


def parse_pharaoh(line: str) -> GoldAlignment:
    """Read the links of one sentence pair: ``s-t`` if sure, ``s?t`` or ``spt`` if only possible.

    Args:
        line: links separated by spaces; empty for a pair without any.

    Raises:
        ReplicationError: a field is not a link.
    """
    links: dict[str, list[tuple[int, int]]] = {"-": [], "?": [], "p": []}
    for field in line.split():
        match = _PHARAOH.fullmatch(field)
        if match is None:
            raise ReplicationError(f"'{field}' is not an alignment link 's-t' or 's?t', counted from 0.")
        links[match[2]].append((int(match[1]), int(match[3])))
    return GoldAlignment.of(links["-"], links["?"] + links["p"])


def merge_pieces(weights: ArrayLike, source_words: ArrayLike, target_words: ArrayLike) -> NDArray[np.float64]:
    """Convert attention between subword pieces to attention between words.

    The weight of a source word is the sum over its pieces; the weight of a target word is the mean over its pieces.

    Args:
        weights: (T, S) attention between pieces.
        source_words: (S,) index of the word of each source piece; -1 for a symbol of no word, such as the end symbol.
        target_words: (T,) the same for the target pieces.

    Returns:
        (target words, source words).
    """
    source, target = _membership(source_words), _membership(target_words)
    average = target / np.maximum(target.sum(axis=0), 1)  # over the pieces of each target word
    merged: NDArray[np.float64] = average.T @ np.asarray(weights, dtype=np.float64) @ source
    return merged


def split_links(links: Links, source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """Convert links between words to links between all pieces of the linked words.

    Args:
        links: (N, 2) between words.
        source_words: S indices, the word of each source piece; -1 for a symbol of no word.
        target_words: T indices, the same for the target pieces.

    Returns:
        (links, 2) between pieces, in their order.
    """
    linked = {(s, t) for s, t in links.tolist()}
    pieces = [(i, j) for i, s in enumerate(source_words) for j, t in enumerate(target_words) if (s, t) in linked]
    return np.array(pieces, dtype=np.int64).reshape(-1, 2)


def hard_alignment(weights: ArrayLike, *, method: Method = "argmax") -> Links:
    """Return the links that attention weights imply. A target word with a row of zeros gets no link.

    Args:
        weights: (T, S).
        method: ``argmax`` links each target word to the source word with the highest weight, and to the first of
            several with that weight; ``threshold`` links every pair whose weight is at least :data:`THRESHOLD`.
    """
    weights = np.asarray(weights)
    if method == "threshold":
        target, source = np.nonzero(weights >= THRESHOLD)
    else:
        target = np.flatnonzero(np.any(weights > 0, axis=1))
        source = weights[target].argmax(axis=1)
    return np.stack((source, target), axis=1).astype(np.int64)


def agreement_counts(links: Links, gold: GoldAlignment) -> NDArray[np.int64]:
    """Return (4,) |A∩S|, |A∩P|, |A| and |S| of one sentence pair; a corpus is scored by the sums of these counts."""
    found, sure, possible = _codes(links), _codes(gold.sure), _codes(gold.possible)
    return np.array([np.isin(found, sure).sum(), np.isin(found, possible).sum(), len(found), len(sure)])


def agreement(counts: ArrayLike) -> Agreement:
    """Return precision |A∩P| / |A|, recall |A∩S| / |S| and error rate 1 - (|A∩S| + |A∩P|) / (|A| + |S|).

    Args:
        counts: (…, 4) sums of :func:`agreement_counts`.

    Returns:
        (…) of each; NaN where the denominator is zero.
    """
    in_sure, in_possible, links, sure = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore"):
        error_rate = 1 - (in_sure + in_possible) / (links + sure)
        return Agreement(in_possible / links, in_sure / sure, error_rate)


def alignment_offsets(weights: ArrayLike, gold: GoldAlignment) -> NDArray[np.int64]:
    """Return the offset of attention for every target word with a gold link (sure or possible) and a weight: (W,).

    The offset is the source position with the highest weight (the first of ties) minus the nearest gold position (the
    lower of ties). An offset of 0 is a hit, and alignment accuracy is the share of zeros. If the most frequent offset
    is not 0, the model has learned a shifted alignment.

    Raises:
        ValueError: a gold link lies outside of (T, S).
    """
    weights = np.asarray(weights)
    source, target = gold.possible.T
    if (source >= weights.shape[1]).any() or (target >= weights.shape[0]).any():
        raise ValueError(f"a gold link lies outside of the {weights.shape[0]} x {weights.shape[1]} weights")
    attends = np.any(weights[target] > 0, axis=1)
    source, target = source[attends], target[attends]
    offsets: NDArray[np.int64] = weights.argmax(axis=1)[target] - source  # of every link
    nearest_first = np.lexsort((source, np.abs(offsets), target))
    _, first = np.unique(target[nearest_first], return_index=True)
    return offsets[nearest_first][first]


def alignment_statistics(weights: ArrayLike, gold: GoldAlignment, *, method: Method = "argmax") -> dict[str, Any]:
    """Return the additive statistics of one example as values that JSON can hold.

    Args:
        weights: (T, S); for a word aligner 1 where it has a link and 0 elsewhere.
        gold: the gold links of the example.
        method: see :func:`hard_alignment`; for a word aligner ``threshold``.

    Returns:
        ``hits`` and ``words``, the ratio of whose sums is alignment accuracy; ``offsets``, a histogram with strings as
        keys; ``aer``, the :func:`agreement_counts` of the links. A target word with a row of zeros is not a hit.
    """
    offsets = alignment_offsets(weights, gold)
    values, counts = np.unique(offsets, return_counts=True)
    return {
        "hits": int((offsets == 0).sum()),
        "words": len(np.unique(gold.possible[:, 1])),
        "offsets": {str(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)},
        "aer": agreement_counts(hard_alignment(weights, method=method), gold).tolist(),
    }


def _membership(words: ArrayLike) -> NDArray[np.float64]:
    words = np.asarray(words, dtype=np.int64)
    one_hot: NDArray[np.float64] = np.equal.outer(words, np.arange(words.max(initial=-1) + 1)).astype(np.float64)
    return one_hot  # (pieces, words)


def _codes(links: Links) -> NDArray[np.int64]:
    codes: NDArray[np.int64] = np.unique((links[:, 0] << 32) | links[:, 1])
    return codes
