"""Relative effective context length of language models (Dai et al. 2019, section 4.3 and appendix C).

Shape letters: C context lengths, P positions of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.01  # threshold of the gain in appendix C

Floats = NDArray[np.float64]
Losses = Mapping[str, Floats]
"""Model name to losses (C, P) in nats: l_i(c, t), with exactly c symbols of context before each position."""


def relative_gains(losses: Losses, r: float) -> dict[str, Floats]:
    """Return the gain of each model per step to a longer context, g_i(c, c') of appendix C with c' the next length.

    All models have the same baseline, the best loss of the group with the shorter context: b(c, t) =
    min_i l_i(c, t). Over T, the share ``r`` of the positions with the largest baseline, the relative loss is
    f_i(c, c') = mean_T min(b(c, t), l_i(c', t)), and the gain is the relative reduction of perplexity,
    1 - exp(f_i(c, c') - f_i(c, c)).

    Args:
        losses: of all models of the group, with context lengths in ascending order.
        r: share of the positions, above 0 and at most 1.

    Returns:
        Model name to (C - 1,) gains, none negative; gain k belongs to the step from length k to length k + 1.
    """
    baseline = np.min(list(losses.values()), axis=0)  # (C, P)
    chosen = max(1, round(r * baseline.shape[1]))
    hardest = np.argsort(-baseline, axis=1, kind="stable")[:-1, :chosen]  # (C - 1, |T|)
    b = np.take_along_axis(baseline[:-1], hardest, axis=1)

    def gain(longer: Floats) -> Floats:
        improved = np.minimum(b, np.take_along_axis(longer, hardest, axis=1))
        return np.asarray(-np.expm1(improved.mean(axis=1) - b.mean(axis=1)))

    return {model: gain(of[1:]) for model, of in losses.items()}


def relative_effective_context_length(
    losses: Losses, contexts: Sequence[int] | NDArray[np.int64], r: float, threshold: float = THRESHOLD
) -> dict[str, int]:
    """Return for each model the shortest context whose step to the next length gains less than ``threshold``.

    If every step gains at least that much, the result is the longest context, which is a lower bound only.

    Args:
        losses: as in :func:`relative_gains`.
        contexts: (C,) context lengths, ascending in steps of Δ; the search begins with the first.
        r: share of the positions.
        threshold: the least gain of a useful step.
    """
    gains = relative_gains(losses, r)
    # The longest context has no further step, so its gain is zero.
    return {model: int(contexts[int(np.argmax([*(of < threshold), True]))]) for model, of in gains.items()}
