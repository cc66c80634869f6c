"""Corpus scores of image captions from sums of per-image statistics.

:mod:`shared.metrics.captioning` computes the statistics. ROUGE-L, CIDEr and SPICE need no function here, because their
corpus scores are means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Default parameters of METEOR 1.5 for English, tuned to human rankings (Denkowski & Lavie 2014).
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
STAGES = (1.0, 0.6, 0.8, 0.6)  # weights of matches by equal words, stems, synonyms and paraphrases


def corpus_bleu(sums: ArrayLike, *, orders: int = 4, brevity_penalty: bool = True) -> Floats:
    """Return unsmoothed BLEU of summed :func:`shared.metrics.captioning.bleu_statistics` (Papineni et al. 2002).

    Args:
        sums: (…, 10).
        orders: the length of the longest n-grams, 1 to 4.
        brevity_penalty: whether to apply it. Xu et al. (2015) report BLEU without it, which favours short captions.

    Returns:
        (…) from 0 to 100; 0 where the n-grams of one length have no match.
    """
    sums = np.asarray(sums, dtype=np.float64)
    hypothesis, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + orders], sums[..., 6 : 6 + orders]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_score = np.log(matches / np.maximum(totals, 1)).mean(axis=-1)
    if brevity_penalty:
        log_score = log_score + np.minimum(0, 1 - reference / np.maximum(hypothesis, 1))
    return np.asarray(100 * np.exp(log_score))


def corpus_meteor(sums: ArrayLike) -> Floats:
    """Return METEOR of summed ``Meteor.statistics``, equal to the result of its EVAL command (Denkowski & Lavie 2014).

    Args:
        sums: (…, 23).

    Returns:
        (…) from 0 to 100; 0 where no word matches.
    """
    sums = np.asarray(sums, dtype=np.float64)
    words, function_words = sums[..., :2], sums[..., 2:4]  # (…, 2): of the hypothesis and of the reference
    stages = sums[..., 4:20].reshape(*sums.shape[:-1], 4, 4)
    content, function = np.split(np.einsum("s,...sk->...k", STAGES, stages), 2, axis=-1)
    chunks, matched = sums[..., 20], sums[..., 21:].mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (DELTA * content + (1 - DELTA) * function) / (
            DELTA * (words - function_words) + (1 - DELTA) * function_words
        )
        precision, recall = np.moveaxis(shares, -1, 0)
        mean = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
        score = mean * (1 - GAMMA * (chunks / matched) ** BETA)
    return np.asarray(100 * np.nan_to_num(np.maximum(score, 0)))
