"""Word alignments: reading gold ones, taking hard ones from attention weights, and how well the two agree.

A link is a pair (source position, target position), both from 0; links are arrays (N, 2) without repetitions.
Gold links are sure or only possible, and the sure ones count as possible too (Och & Ney 2003).

Shape letters: S source length, T target length, N links, W target words that have a gold link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared.errors import ReplicationError

Links = NDArray[np.int64]
Floats = NDArray[np.float64]
_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")


@dataclass(frozen=True)
class GoldAlignment:
    """Gold links of one sentence pair."""

    sure: Links
    possible: Links  # the sure links included

    @classmethod
    def of(cls, sure: Iterable[tuple[int, int]], only_possible: Iterable[tuple[int, int]] = ()) -> GoldAlignment:
        """From pairs in any order; a link that is given as both is sure."""
        sure = set(sure)
        return cls(as_links(sure), as_links(sure.union(only_possible)))


@dataclass(frozen=True)
class Agreement:
    """Agreement of links with gold links: a number each, or as many as there were sums."""

    precision: Floats  # share of the links that are possible
    recall: Floats  # share of the sure links that were found
    error_rate: Floats


def as_links(pairs: Iterable[tuple[int, int]]) -> Links:
    """An array (N, 2) of distinct links, sorted by source and then target position."""
    return np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)


def parse_pharaoh(line: str, *, first: int = 0) -> GoldAlignment:
    """Read the links of one sentence pair: ``s-t`` if sure, ``s?t`` or ``spt`` if only possible.

    Args:
        line: links separated by spaces; empty for a pair without any.
        first: what the file calls the first word, 0 or 1.

    Raises:
        ReplicationError: something else stands there, or a position before the first word.
    """
    links: dict[str, list[tuple[int, int]]] = {"-": [], "?": [], "p": []}
    for field in line.split():
        match = _PHARAOH.fullmatch(field)
        if match is None or min(int(match[1]), int(match[3])) < first:
            raise ReplicationError(f"'{field}' is not an alignment link 's-t' or 's?t', counted from {first}.")
        links[match[2]].append((int(match[1]) - first, int(match[3]) - first))
    return GoldAlignment.of(links["-"], links["?"] + links["p"])


def merge_pieces(weights: ArrayLike, source_words: ArrayLike, target_words: ArrayLike) -> NDArray[np.float64]:
    """Attention between words from attention between the pieces they were cut into.

    A source word receives what its pieces receive together; a target word attends as they on average do.

    Args:
        weights: (T, S) between pieces.
        source_words: (S,) index of the word each source piece belongs to; -1 for none, as of an end symbol.
        target_words: (T,) likewise.

    Returns:
        (target words, source words).
    """
    source, target = _membership(source_words), _membership(target_words)
    average = target / np.maximum(target.sum(axis=0), 1)  # over the pieces of each target word
    merged: NDArray[np.float64] = average.T @ np.asarray(weights, dtype=np.float64) @ source
    return merged


def hard_alignment(
    weights: ArrayLike,
    *,
    method: Literal["argmax", "intersection", "threshold"] = "argmax",
    threshold: float = 0.5,
) -> Links:
    """Links from attention weights. A target word that attends nowhere, a row of zeros, gets none.

    Args:
        weights: (T, S).
        method: ``argmax`` links each target word to the source word with the highest weight, the first of
            equals; ``intersection`` keeps of these links those that are highest for their source word too;
            ``threshold`` makes a link of every weight that is at least ``threshold``.
        threshold: for the method of that name.

    Raises:
        ValueError: no such method.
    """
    weights = np.asarray(weights)
    rows = np.flatnonzero(np.any(weights > 0, axis=1))
    best = weights[rows].argmax(axis=1)
    if method == "threshold":
        target, source = np.nonzero(weights >= threshold)
    elif method == "argmax":
        target, source = rows, best
    elif method == "intersection":
        mutual = weights.argmax(axis=0)[best] == rows
        target, source = rows[mutual], best[mutual]
    else:
        raise ValueError(f"no method {method!r}")
    return np.stack((source, target), axis=1).astype(np.int64)


def agreement_counts(links: Links, gold: GoldAlignment) -> NDArray[np.int64]:
    """(4,) |A∩S|, |A∩P|, |A| and |S| of one sentence pair; a corpus is scored by their sums."""
    found, sure, possible = _codes(links), _codes(gold.sure), _codes(gold.possible)
    return np.array([np.isin(found, sure).sum(), np.isin(found, possible).sum(), len(found), len(sure)])


def agreement(counts: ArrayLike) -> Agreement:
    """Precision |A∩P| / |A|, recall |A∩S| / |S| and alignment error rate 1 - (|A∩S| + |A∩P|) / (|A| + |S|).

    Args:
        counts: (…, 4) sums of :func:`agreement_counts`.

    Returns:
        (…) of each; not a number where the denominator is zero.
    """
    in_sure, in_possible, links, sure = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore"):
        error_rate = 1 - (in_sure + in_possible) / (links + sure)
        return Agreement(in_possible / links, in_sure / sure, error_rate)


def alignment_offsets(weights: ArrayLike, gold: GoldAlignment) -> NDArray[np.int64]:
    """How far attention is off, for every target word that has a gold link, sure or possible, and attends: (W,).

    The offset is the source position with the highest weight, the first of equals, minus the gold position
    nearest to it, the lower of two equally near: 0 is a hit, and alignment accuracy is the share of zeros. A
    peak elsewhere tells of an alignment that was learned, but shifted.

    Raises:
        ValueError: a gold link lies outside of (T, S).
    """
    weights = np.asarray(weights)
    source, target = _inside(gold, weights)
    attends = np.any(weights[target] > 0, axis=1)
    source, target = source[attends], target[attends]
    offsets: NDArray[np.int64] = weights.argmax(axis=1)[target] - source  # of every link
    nearest_first = np.lexsort((source, np.abs(offsets), target))
    _, first = np.unique(target[nearest_first], return_index=True)
    return offsets[nearest_first][first]


def attention_correctness(weights: ArrayLike, gold: GoldAlignment) -> NDArray[np.float64]:
    """Attention mass on gold links, for every target word that has one: (W,) (Liu et al. 2017, section 3.1).

    Raises:
        ValueError: a gold link lies outside of (T, S).
    """
    weights = np.asarray(weights, dtype=np.float64)
    source, target = _inside(gold, weights)
    words, word = np.unique(target, return_inverse=True)
    mass: NDArray[np.float64] = np.zeros(len(words))
    np.add.at(mass, word, weights[target, source])
    return mass


def alignment_statistics(
    weights: ArrayLike, gold: GoldAlignment, *, method: Literal["argmax", "threshold"] = "argmax"
) -> dict[str, Any]:
    """The additive statistics of one example, ready for JSON.

    Args:
        weights: (T, S); of an aligner 1 where there is a link and else 0.
        gold: its gold links.
        method: how links are made of weights, see :func:`hard_alignment`; for an aligner's ``threshold``.

    Returns:
        ``hits`` and ``words``, whose ratio of sums is alignment accuracy; ``offsets``, a histogram keyed by
        strings; ``aer``, the :func:`agreement_counts` of the links. A word that attends nowhere is no hit.
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


def _inside(gold: GoldAlignment, weights: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    source, target = gold.possible.T
    if (source >= weights.shape[1]).any() or (target >= weights.shape[0]).any():
        raise ValueError(f"a gold link lies outside of the {weights.shape[0]} x {weights.shape[1]} weights")
    return source, target
