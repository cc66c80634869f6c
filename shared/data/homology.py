"""Families of proteins: groups of sequences with many common k-mers or with a common name, for splits by family.

Two sequences are linked if their sets A and B of k-mers are similar by the Jaccard index |A ∩ B| / |A ∪ B| or, for
fragments, by the containment |A ∩ B| / min(|A|, |B|). A family is a connected component of the links (single linkage).
The Jaccard index of random sequences of 450 amino acids with k = 5 is about 0.0001. A threshold of 0.02 finds relatives
down to a sequence identity of about one half. More distant relatives have few common k-mers, and are linked by a common
name only.

Shape letters: N sequences, C distinct k-mers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
"""The 20 standard amino acids."""
ANOMALOUS = "BOUXZ"
"""Pyrrolysine (O), selenocysteine (U) and ambiguity codes; a k-mer with one of them is ignored."""

_ROWS = 512  # sequences per block of pairwise comparisons


def families(
    sequences: Sequence[str], *, k: int, jaccard: float, containment: float,
    kin: Sequence[Hashable | None] | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """Return for each sequence the index of the first member of its family: (N,).

    Args:
        sequences: N sequences of amino acids.
        k: length of a k-mer.
        jaccard: the least Jaccard index that links two sequences.
        containment: the least containment that links two sequences.
        kin: for each sequence a key, which links it to all sequences with the same key; None links to no other.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = len(sequences)
    first_of: dict[Hashable, int] = {}
    named = [(first_of.setdefault(name, i), i) for i, name in enumerate(kin or ()) if name is not None]
    links = [np.array(named, dtype=np.int64).reshape(-1, 2).T]
    words = _words(sequences, k)
    sizes, by_word = np.diff(words.indptr).astype(np.float64), words.T.tocsr()
    for start in range(0, count, _ROWS):
        common = (words[start : start + _ROWS] @ by_word).tocoo()
        later = common.row + start < common.col
        i, j, shared = common.row[later] + start, common.col[later], common.data[later]
        near = (shared / (sizes[i] + sizes[j] - shared) >= jaccard) | (
            shared / np.minimum(sizes[i], sizes[j]) >= containment
        )
        links.append(np.stack((i[near], j[near])))
    i, j = np.concatenate(links, axis=1)
    graph = coo_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.int64)


def _words(sequences: Sequence[str], k: int) -> csr_matrix:
    """Return (N, C), 1 where a sequence contains a k-mer."""
    from scipy.sparse import csr_matrix

    base = len(AMINO_ACIDS)
    values = np.full(256, -1, dtype=np.int64)
    values[list(AMINO_ACIDS.encode())] = np.arange(base)
    # A line end separates the sequences, so that no k-mer spans two of them.
    characters = np.frombuffer(("\n".join(sequences) + "\n" * k).encode("ascii"), dtype=np.uint8)
    count = len(characters) - k + 1
    codes = np.cumsum(characters == ord("\n"))[:count]  # index of the sequence; the loop appends the letters
    whole = np.ones(count, dtype=bool)
    for place in range(k):
        letters = values[characters[place : place + count]]
        codes = codes * base + letters
        whole &= letters >= 0
    owners, codes = np.divmod(np.unique(codes[whole]), base**k)
    found, columns = np.unique(codes, return_inverse=True)
    ones = np.ones(len(columns), dtype=np.int32)
    return csr_matrix((ones, (owners, columns)), shape=(len(sequences), len(found)))
