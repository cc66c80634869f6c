"""The softmax over positions that all attentions share."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis among the positions where ``mask`` is true.

    A row with no position left gives zeros and zero gradients, where a softmax over -inf would give NaN.

    Args:
        scores: (…, S).
        mask: bool, broadcastable to ``scores``.

    Returns:
        (…, S) weights; rows sum to one, or are all zero where nothing may be attended to.
    """
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0)
