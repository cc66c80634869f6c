"""How redundant and how focused the rows of an attention are, and whether the words it weighs most are the evidence.

Lin et al. (2017, section 2.2) want the r rows of A, each a distribution over the n words of a text, to differ from
each other and each to rest on few words; they penalise ‖AAᵀ − I‖²_F, which is
:func:`shared.attention.structured.redundancy_penalty`. Here is what the penalty is to bring about, each for itself.
Weights are zero at padding, so it adds to nothing; all sums are of doubles.

Shape letters: B texts of a batch, r rows, n words with padding, E texts, N words of all texts together.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def redundancy(weights: Tensor) -> Tensor:
    """Mean cosine between two different rows, 0 (no word in common) to 1 (all alike): (B, r, n) to (B,).

    A single row has no other; for it the result is not a number.
    """
    rows, doubles = weights.size(1), weights.double()
    units = torch.nn.functional.normalize(doubles, dim=-1)
    # All r² cosines together are the squared length of the sum of the units; r of them are of a row with itself.
    others = units.sum(1).square().sum(-1) - rows
    return others.clamp(min=0) / (rows * (rows - 1))


def focus(weights: Tensor) -> Tensor:
    """Mean diagonal of AAᵀ, 1/n (even weights) to 1 (each row on one word): (B, r, n) to (B,)."""
    return weights.double().square().sum(-1).mean(-1)


def importance(weights: Tensor) -> Tensor:
    """How much a text's attention rests on each word: (B, r, n) to (B, n), the mean over rows, which sums to one."""
    return weights.double().mean(-2)


def ranks(scores: Floats, owners: Integers) -> Integers:
    """Place of each word among the words of its text: 0 for the highest score, of equals the first.

    Args:
        scores: (N,).
        owners: (N,) number of the text that each word is of, in any order.

    Returns:
        (N,).
    """
    order = np.lexsort((-scores, owners))
    sorted_owners = owners[order]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    return places


def evidence(scores: Floats, owners: Integers, gold: NDArray[np.bool_]) -> dict[str, NDArray[np.number]]:
    """Whether the words that matter to the attention are those that decide the text's class.

    Args:
        scores: (N,) importance of each word.
        owners: (N,) number of the text that each word is of; every text has one.
        gold: (N,) whether the word is evidence.

    Returns:
        (E,) each: ``mass``, the importance of the evidence words together; ``found``, how many of a text's w evidence
        words are among its w most important words; ``words``, that w; ``length``, words of the text. Were the order
        one of chance, w / length of the evidence words would be found.
    """
    words = np.bincount(owners[gold], minlength=owners.max() + 1)
    found = gold & (ranks(scores, owners) < words[owners])
    return {
        "mass": np.bincount(owners, weights=scores * gold),
        "found": np.bincount(owners[found], minlength=len(words)),
        "words": words,
        "length": np.bincount(owners),
    }
