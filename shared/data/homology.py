"""Families of proteins: sequences that have many short words in common, or a name, so that no split knows another's.

Two sequences are linked where the sets A and B of their words of k amino acids are similar, by Jaccard's measure
|A ∩ B| / |A ∪ B| or, for fragments, by the share |A ∩ B| / min(|A|, |B|) of the smaller set; a family is all that links
lead to (single linkage). Between random sequences of 450 amino acids and k = 5 the first is about 0.0001. With a
threshold of 0.02 it finds relatives down to an identity of about one half, whatever their order in the genome; of
remoter ones, which no words betray, a common name does.

Shape letters: N sequences, C different words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
"""The 20 standard ones."""
ANOMALOUS = "BOUXZ"
"""Pyrrolysine (O) and selenocysteine (U), and letters for what is not known exactly; they are in no word."""

_ROWS = 512  # sequences that are compared with all others at once


def families(
    sequences: Sequence[str], *, k: int, jaccard: float, containment: float,
    kin: Sequence[Hashable | None] | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """(N,) the number of the first member of each sequence's family.

    Args:
        sequences: of amino acids, N.
        k: letters of a word.
        jaccard: the similarity from which two are linked.
        containment: likewise.
        kin: of each sequence what links it to all others that have the same, or None.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = len(sequences)
    links = [_links_of_kin(kin or [None] * count)]
    for i, j, found in _similar(_words(sequences, k)):
        near = (found.jaccard >= jaccard) | (found.containment >= containment)
        links.append(np.stack((i[near], j[near])))
    i, j = np.concatenate(links, axis=1)
    graph = coo_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.int64)


class _Similarities(NamedTuple):
    """Of the word sets of many pairs of sequences.

    Attributes:
        jaccard: (pairs,) share of the words of both sets that are in both.
        containment: (pairs,) share of the words of the smaller set that are in both.
    """

    jaccard: NDArray[np.float64]
    containment: NDArray[np.float64]


def _words(sequences: Sequence[str], k: int) -> csr_matrix:
    """(N, C) 1 where a sequence has a word."""
    from scipy.sparse import csr_matrix

    base = len(AMINO_ACIDS)
    values = np.full(256, -1, dtype=np.int64)
    values[list(AMINO_ACIDS.encode())] = np.arange(base)
    # Line ends are in no word, so that none goes from one sequence into the next.
    characters = np.frombuffer(("\n".join(sequences) + "\n" * k).encode("ascii"), dtype=np.uint8)
    count = len(characters) - k + 1
    codes = np.cumsum(characters == ord("\n"))[:count]  # the sequence, and then its letters
    whole = np.ones(count, dtype=bool)
    for place in range(k):
        letters = values[characters[place : place + count]]
        codes = codes * base + letters
        whole &= letters >= 0
    owners, codes = np.divmod(np.unique(codes[whole]), base**k)
    found, columns = np.unique(codes, return_inverse=True)
    ones = np.ones(len(columns), dtype=np.int32)
    return csr_matrix((ones, (owners, columns)), shape=(len(sequences), len(found)))


def _similar(words: csr_matrix) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], _Similarities]]:
    """All pairs i < j that have a word in common, some at a time."""
    sizes = np.diff(words.indptr).astype(np.float64)
    by_word = words.T.tocsr()
    for start in range(0, len(sizes), _ROWS):
        common = (words[start : start + _ROWS] @ by_word).tocoo()
        later = common.row + start < common.col
        i, j, shared = common.row[later] + start, common.col[later], common.data[later]
        union = sizes[i] + sizes[j] - shared
        yield i, j, _Similarities(shared / union, shared / np.minimum(sizes[i], sizes[j]))


def _links_of_kin(kin: Sequence[Hashable | None]) -> NDArray[np.int64]:
    """(2, links) each sequence and the first one of the same kin."""
    first: dict[Hashable, int] = {}
    links = [(first.setdefault(name, i), i) for i, name in enumerate(kin) if name is not None]
    return np.array(links, dtype=np.int64).reshape(-1, 2).T
