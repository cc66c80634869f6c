"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1): one fused call, or step by step with its weights.

Shape letters: B batch, H heads, Q queries, S keys, K query and key width, V value width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from shared.attention.softmax import masked_softmax


def causal_mask(queries: int, keys: int, *, device: torch.device | None = None) -> Tensor:
    """(Q, S) bool, true where position i may see position j: j ≤ i."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, None]:
    """softmax(q kᵀ · scale) v through PyTorch's fastest exact kernel, equation (1).

    Args:
        q: (B, H, Q, K).
        k: (B, H, S, K).
        v: (B, H, S, V).
        mask: bool, broadcastable to (B, H, Q, S), true where a query may look; the result of a query that may
            look nowhere is zero.
        causal: instead of ``mask``: query i sees the keys up to i.
        scale: 1/√K unless given.

    Returns:
        (B, H, Q, V), and None for the weights, which this kernel never holds.
    """
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale), None


def attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """The same as :func:`attend`, and its weights (B, H, Q, S) too."""
    if causal:
        mask = causal_mask(q.size(-2), k.size(-2), device=q.device)
    scores = q @ k.mT * (1 / math.sqrt(q.size(-1)) if scale is None else scale)  # (B, H, Q, S)
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    return weights @ v, weights
