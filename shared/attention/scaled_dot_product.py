"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1), and its weights.

Shape letters: B batch, H heads, Q queries, S keys, K query and key width, V value width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as


def causal_mask(queries: int, keys: int, *, device: torch.device | None = None) -> Tensor:
    """(Q, S) bool, true where position i may see position j: j ≤ i."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


def attention_weights(
    q: Tensor, k: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(q kᵀ · scale), (B, H, Q, S); arguments as for :func:`attend`."""
    if causal:
        mask = causal_mask(q.size(-2), k.size(-2), device=q.device)
    scores = q @ k.mT * (1 / math.sqrt(q.size(-1)) if scale is None else scale)  # (B, H, Q, S)
    return torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """The twin of :func:`attend`: PyTorch's fastest exact kernel, which never holds the weights."""
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)


@runs_as(fused_attention)
def attend(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(q kᵀ · scale) v, equation (1).

    Args:
        q: (B, H, Q, K).
        k: (B, H, S, K).
        v: (B, H, S, V).
        mask: bool, broadcastable to (B, H, Q, S), true where a query may look; the result of a query that may
            look nowhere is zero.
        causal: instead of ``mask``: query i sees the keys up to i.
        scale: 1/√K unless given.

    Returns:
        (B, H, Q, V).
    """
    return attention_weights(q, k, mask=mask, causal=causal, scale=scale) @ v
