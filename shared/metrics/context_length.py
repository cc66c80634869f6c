"""How much of the context language models make use of: relative effective context length (Dai et al. 2019, 4.3 and C).

Shape letters: C lengths of the context, P positions of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.01  # appendix C

Floats = NDArray[np.float64]
Losses = Mapping[str, Floats]
"""Model of a group to its losses (C, P), nats: l_i(c, t), with exactly c symbols of context before each position."""


def relative_gains(losses: Losses, r: float) -> dict[str, Floats]:
    """What each model gains by each step to a longer context, g_i(c, c') of appendix C with c' the next length.

    All models must improve on the same baseline, the best of the group with the shorter context: b(c, t) =
    min_i l_i(c, t). Over T, the share ``r`` of the positions where it is largest, the relative loss is f_i(c, c') =
    mean_T min(b(c, t), l_i(c', t)), and the gain is the relative reduction of perplexity, 1 - exp(f_i(c, c') -
    f_i(c, c)).

    Args:
        losses: of the group, lengths of the context ascending.
        r: above 0, at most 1.

    Returns:
        Model to (C - 1,) gains, none negative; [k] is of the step from the k-th length to the next.
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
    """The shortest context from which the next longer one gains less than ``threshold``, for each model of a group.

    Where every step gains that much it is the longest of all, and no more is known than that it is not less.

    Args:
        losses: as in :func:`relative_gains`.
        contexts: (C,) the lengths, ascending by the step Δ; the search begins with the first.
        r: share of the positions.
        threshold: of the gain.
    """
    gains = relative_gains(losses, r)
    # After the last step nothing more can be gained.
    return {model: int(contexts[int(np.argmax([*(of < threshold), True]))]) for model, of in gains.items()}
