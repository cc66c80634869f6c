"""Plain twins of :func:`shared.attention.linear.chunkwise_linear_attention`, and the weights that it never computes.

The parallel form is the equation, in time and memory that grow with T²; the recurrent one is its cumulative sums
(Katharopoulos et al. 2020, equations 9 to 12), a position at a time. Results, states and gradients of all are the same.

Shape letters: B batch, H heads, N queries, S keys, T positions where these are the same, C features, V width of values.
"""

from __future__ import annotations

import torch
from torch import Tensor

from shared.attention.linear import (
    State,
    begin,
    linear_attention,
    linear_attention_step,
    quotient,
    running_peaks,
    summarize,
)
from shared.attention.linear_chunks import LOWEST, with_ones


def parallel_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, *, log_scale: Tensor | None = None, state: State | None = None
) -> tuple[Tensor, State]:
    """Every pair has its weight; arguments and results are those of the chunkwise form."""
    state = begin(k, v, log_scale, state)
    dtype = state.sums.dtype
    pairs = torch.ones(q.size(2), q.size(2), dtype=dtype, device=q.device).tril()  # (T, T)
    past = pairs[:, :1]
    if log_scale is not None:
        peaks = running_peaks(log_scale, state)  # (B, H, 1 + T)
        scales = log_scale.detach().to(dtype).clamp(min=LOWEST)
        pairs = (scales.unsqueeze(-2) - peaks[..., 1:, None]).clamp(max=0).exp() * pairs  # (B, H, T, T)
        past = (peaks[..., :1] - peaks[..., 1:]).exp().unsqueeze(-1)  # (B, H, T, 1)
    with torch.autocast(q.device.type, enabled=False):
        q = q.to(dtype)
        a = q @ k.to(dtype).mT * pairs  # (B, H, T, T)
        both = a @ with_ones(v.to(dtype)) + past * (q @ state.sums)
    return quotient(both, q).to(v.dtype), summarize(k, v, log_scale=log_scale, state=state)


def recurrent_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, *, log_scale: Tensor | None = None, state: State | None = None
) -> tuple[Tensor, State]:
    """Step by step; arguments and results are those of the chunkwise form."""
    state, out = begin(k, v, log_scale, state), []
    for t in range(q.size(2)):
        scale = None if log_scale is None else log_scale[:, :, t]
        y, state = linear_attention_step(q[:, :, t], k[:, :, t], v[:, :, t], state, log_scale=scale)
        out.append(y)
    return torch.stack(out, dim=2), state


def linear_attention_weights(q: Tensor, k: Tensor, *, log_scale: Tensor | None = None, causal: bool = False) -> Tensor:
    """φ(q_i)ᵀ φ(k_j) / Σ_j φ(q_i)ᵀ φ(k_j): (B, H, N, C) and (B, H, S, C) to (B, H, N, S).

    Args:
        q: φ(q).
        k: φ(k); zero at padding.
        log_scale: (B, H, S) of the keys.
        causal: whether query i sees the keys up to i only; then N = S.

    Returns:
        Rows that sum to one, or are zero where nothing is seen.
    """
    # The weighted means of unit vectors are the weights.
    unit = torch.eye(k.size(2), dtype=k.dtype, device=k.device).expand(*k.shape[:2], -1, -1)
    if causal:
        return parallel_linear_attention(q, k, unit, log_scale=log_scale)[0]
    return linear_attention(q, k, unit, log_scale=log_scale)
