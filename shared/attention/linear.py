"""Linear attention: weights φ(q)ᵀ φ(k), whose sums need no weight of a single pair (Katharopoulos et al. 2020).

    out_i = φ(q_i)ᵀ S_i / φ(q_i)ᵀ z_i    with S_i = Σ_j φ(k_j) v_jᵀ and z_i = Σ_j φ(k_j),

over all j (equation 5), or over j ≤ i where attention is causal (equations 9 to 12). Functions here take features φ(q)
and φ(k), of whatever map (:mod:`shared.attention.feature_maps`). z is carried as one more column of S, whose values are
all 1. Both are kept in float32 at least, and autocast does not reach in here: they are long sums.

Features of a key may come divided by exp(log_scale), a number of its own. Sums are then held divided by exp(peak), the
largest scale *so far*, by which they are divided anew when a larger one comes, as in a running softmax: nothing
overflows, and nothing depends on what comes later. A query's scale cancels. Where a normaliser is zero, as it is when
only padding has been seen, the result is zero.

The causal forms are exact and equal: the chunkwise one is the fast one (:mod:`shared.attention.linear_chunks`); the
parallel one takes time and memory that grow with T², and the recurrent one goes step by step.

Shape letters: B batch, H heads, N queries, S keys, T positions where these are the same, C features, V width of values,
L positions of a chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from shared.attention.feature_maps import FeatureMap
from shared.attention.linear_chunks import LOWEST, Chunkwise, divisor, least_divisor, with_ones


class State(NamedTuple):
    """All that attention remembers of keys and values, however many they are.

    Attributes:
        sums: (B, H, C, V + 1) of Σ_j φ(k_j) [v_j, 1]ᵀ, which is S and z side by side, divided by exp(peak).
        peak: (B, H), the largest log_scale so far; None where keys have none.
    """

    sums: Tensor
    peak: Tensor | None = None


def summarize(k: Tensor, v: Tensor, *, log_scale: Tensor | None = None, state: State | None = None) -> State:
    """The state of keys and values, after those of another state if there is one.

    Args:
        k: φ(k), (B, H, S, C).
        v: (B, H, S, V).
        log_scale: (B, H, S) of the keys, see :class:`shared.attention.feature_maps.Features`.
        state: of earlier keys. Either both the state and these keys have scales, or neither has.
    """
    (sums, peak), k = _rescaled(k, log_scale, begin(k, v, log_scale, state))
    with torch.autocast(k.device.type, enabled=False):
        added = torch.baddbmm(sums.flatten(0, 1), k.flatten(0, 1).mT, with_ones(v.flatten(0, 1).to(k.dtype)))
    return State(added.view_as(sums), peak)


def read(q: Tensor, state: State) -> Tensor:
    """φ(q)ᵀ S / φ(q)ᵀ z: (B, H, N, C) to (B, H, N, V), in the type of the state."""
    with torch.autocast(q.device.type, enabled=False):
        q = q.to(state.sums.dtype)
        return quotient(q @ state.sums, q)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, log_scale: Tensor | None = None) -> Tensor:
    """Every query sees every key.

    Args:
        q: φ(q), (B, H, N, C).
        k: φ(k), (B, H, S, C); zero at padding.
        v: (B, H, S, V).
        log_scale: (B, H, S) of the keys.

    Returns:
        (B, H, N, V) in the type of the values.
    """
    return read(q, summarize(k, v, log_scale=log_scale)).to(v.dtype)


def linear_attention_step(
    q: Tensor, k: Tensor, v: Tensor, state: State | None = None, *, log_scale: Tensor | None = None
) -> tuple[Tensor, State]:
    """One position of causal attention, as a recurrent network (section 3.4, equations 16 to 20).

    Args:
        q: φ(q), (B, H, C).
        k: φ(k), (B, H, C).
        v: (B, H, V).
        state: of the positions before, if there are any.
        log_scale: (B, H) of the keys.

    Returns:
        (B, H, V) in the type of the values, and the state with this position in it.
    """
    k, v, scale = k.unsqueeze(2), v.unsqueeze(2), None if log_scale is None else log_scale.unsqueeze(2)
    (sums, peak), k = _rescaled(k, scale, begin(k, v, scale, state))
    # For a single position several times as fast as a matrix product.
    state = State(torch.addcmul(sums, k.mT, with_ones(v.to(k.dtype))), peak)
    return read(q.unsqueeze(2), state).squeeze(2).to(v.dtype), state


def chunkwise_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, *, log_scale: Tensor | None = None, state: State | None = None, chunk: int = 64
) -> tuple[Tensor, State]:  # fmt: skip
    """Causal attention in matrix products: inside a chunk by pairs, and from all chunks before it by their state.

    Time and memory are proportional to T. Only the sums of a few chunks are held at a time, in the backward pass too:
    like algorithm 1 of the paper, it recomputes them, forward for queries and backward for keys and values, whereas
    autograd would keep all of them. The function cannot be differentiated twice.

    Args:
        q: φ(q), (B, H, T, C).
        k: φ(k), (B, H, T, C); zero at padding.
        v: (B, H, T, V).
        log_scale: (B, H, T) of the keys.
        state: of positions before these, if there are any; gradients flow through it.
        chunk: L; T need not be a multiple. Results do not depend on it but for rounding.

    Returns:
        (B, H, T, V) in the type of the values, and the state after the last position.
    """
    state = begin(k, v, log_scale, state)
    peaks = None if log_scale is None else running_peaks(log_scale, state)
    with torch.autocast(q.device.type, enabled=False):
        out, sums = Chunkwise.apply(q, k, v, state.sums, log_scale, peaks, chunk)  # type: ignore[no-untyped-call]
    return out, State(sums, None if peaks is None else peaks[..., -1])


def attend_with_features(
    features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
) -> Tensor:
    """Linear attention of queries and keys to which a map is applied first, in its fast form.

    Args:
        features: φ.
        q: (B, H, N, K).
        k: (B, H, S, K).
        v: (B, H, S, V).
        mask: (B, S) bool, true at symbols, false at padding; None if there is no padding.
        causal: whether query i sees the keys up to i only; then N = S.

    Returns:
        (B, H, N, V); zero where nothing is seen.
    """
    q = features.queries(q)
    k, log_scale = features.keys(k, None if mask is None else mask.unsqueeze(1))
    if causal:
        return chunkwise_linear_attention(q, k, v, log_scale=log_scale)[0]
    return linear_attention(q, k, v, log_scale=log_scale)


def begin(k: Tensor, v: Tensor, log_scale: Tensor | None, state: State | None) -> State:
    """The initial state for these keys and values: ``state`` if given, otherwise zero sums."""
    if state is None:
        dtype = torch.promote_types(torch.promote_types(k.dtype, v.dtype), torch.float32)
        sums = k.new_zeros(*k.shape[:2], k.size(-1), v.size(-1) + 1, dtype=dtype)
        state = State(sums, None if log_scale is None else sums.new_full(k.shape[:2], LOWEST))
    assert (state.peak is None) == (log_scale is None), "a state of keys with a log_scale goes on with such keys only"
    return state


def running_peaks(log_scale: Tensor, state: State) -> Tensor:
    """The largest scale before the first position and up to each: (B, H, T) to (B, H, 1 + T)."""
    assert state.peak is not None
    scales = torch.cat((state.peak.unsqueeze(-1), log_scale.detach().to(state.peak.dtype)), dim=-1)
    return scales.clamp(min=LOWEST).cummax(-1).values


def _rescaled(k: Tensor, log_scale: Tensor | None, state: State) -> tuple[State, Tensor]:
    """State and keys (B, H, S, C) in the type of the state, divided by the larger of their peaks."""
    k = k.to(state.sums.dtype)
    if log_scale is None:
        return state, k
    before, after = running_peaks(log_scale.amax(-1, keepdim=True), state).unbind(-1)  # (B, H)
    scales = log_scale.detach().to(k.dtype).clamp(min=LOWEST)
    sums = state.sums * (before - after).exp()[..., None, None]
    return State(sums, after), k * (scales - after.unsqueeze(-1)).exp().unsqueeze(-1)


def quotient(both: Tensor, q: Tensor) -> Tensor:
    """Sums over values (…, V) divided by the column after them, (…, V + 1) in all; zero where that is zero.

    Where the divisor is below :func:`shared.attention.linear_chunks.least_divisor` of φ(q) (…, C), the gradient is
    computed as if the latter were the divisor, as in the chunkwise form.
    """
    out: Tensor = _Quotient.apply(both, q)  # type: ignore[no-untyped-call]
    return out


class _Quotient(torch.autograd.Function):
    """What autograd would do, but for slices' gradients, each of which is a tensor of zeros as large as all sums."""

    @staticmethod
    def forward(ctx: Any, both: Tensor, q: Tensor) -> Tensor:
        z = divisor(both)
        out = both[..., :-1] / z
        ctx.save_for_backward(out, z, q)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, None]:
        out, z, q = ctx.saved_tensors
        d_out = d_out * (z.abs() / least_divisor(q)).clamp(max=1)
        d = out.new_empty(*out.shape[:-1], out.size(-1) + 1)
        torch.div(d_out, z, out=d[..., :-1])
        torch.sum(out / z * d_out, -1, out=d[..., -1]).neg_()
        return d, None


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
