"""Redundancy and focus of the rows of an attention matrix, and how much of the attention is on evidence words.

Lin et al. (2017, section 2.2) want the r rows of A, each a distribution over the n words of a text, to differ from
each other and each to concentrate on few words. They penalise ‖AAᵀ − I‖²_F, which is
:func:`shared.attention.structured.redundancy_penalty`. This module measures the two aims separately. Padding has
weight zero and does not change the results; sums are computed in float64.

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
    """Return the mean cosine of two different rows, from 0 (no common word) to 1 (equal rows): (B, r, n) to (B,).

    With r = 1 there is no pair of rows, and the result is NaN.
    """
    rows, doubles = weights.size(1), weights.double()
    units = torch.nn.functional.normalize(doubles, dim=-1)
    # The squared norm of the summed unit vectors is the sum of all r² cosines; r of them compare a row with itself.
    others = units.sum(1).square().sum(-1) - rows
    return others.clamp(min=0) / (rows * (rows - 1))


def focus(weights: Tensor) -> Tensor:
    """Return the mean diagonal of AAᵀ, from 1/n (uniform weights) to 1 (one word per row): (B, r, n) to (B,)."""
    return weights.double().square().sum(-1).mean(-1)


def importance(weights: Tensor) -> Tensor:
    """Return the mean weight of each word over the rows: (B, r, n) to (B, n), which sums to one over n."""
    return weights.double().mean(-2)


def ranks(scores: Floats, owners: Integers) -> Integers:
    """Return the rank of each word in its text: 0 is the highest score; of ties the first word ranks first.

    Args:
        scores: (N,).
        owners: (N,) index of the text of each word, in any order.

    Returns:
        (N,).
    """
    order = np.lexsort((-scores, owners))
    sorted_owners = owners[order]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    return places


def evidence(scores: Floats, owners: Integers, gold: NDArray[np.bool_]) -> dict[str, NDArray[np.number]]:
    """Compare the words with the highest attention to the words that decide the class of the text.

    Args:
        scores: (N,) importance of each word.
        owners: (N,) index of the text of each word; every text has at least one word.
        gold: (N,) whether the word is an evidence word.

    Returns:
        (E,) each: ``mass``, the summed importance of the evidence words; ``found``, how many of the w evidence words of
        a text are among its w most important words; ``words``, that w; ``length``, the number of words of the text. A
        random ranking finds a share w / length of the evidence words in expectation.
    """
    words = np.bincount(owners[gold], minlength=owners.max() + 1)
    found = gold & (ranks(scores, owners) < words[owners])
    return {
        "mass": np.bincount(owners, weights=scores * gold),
        "found": np.bincount(owners[found], minlength=len(words)),
        "words": words,
        "length": np.bincount(owners),
    }
