"""How :func:`shared.attention.linear.chunkwise_linear_attention` and its gradient are computed.

Both are made of matrix products. Inside a chunk, every pair of positions has its weight. All positions before the
chunk enter as the sums of :mod:`shared.attention.linear`. A few chunks are computed together, which needs few calls,
and memory for intermediate results that does not grow with T.

Shape letters: B batch, H heads, T positions, C features, V width of values, N chunks worked on together, L positions of
a chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

LOWEST = torch.finfo(torch.float32).min / 4
"""Stands for a log_scale of -∞: the difference of two is still a number."""
STEEPEST = 2.0**-110
"""The least ratio of a normaliser to the largest feature of its query at which the gradient is not damped."""
ELEMENTS = 2**17
"""About how many elements of features, of values and of sums are processed together. With more, the intermediate
results would not fit into the cache of one core."""


def with_ones(v: Tensor) -> Tensor:
    """Values (…, V) with the column (…, V + 1) that makes the normaliser."""
    return functional.pad(v, (0, 1), value=1.0)


def divisor(both: Tensor) -> Tensor:
    """The normaliser (…, 1) after values (…, V); infinite where it is zero, as after padding alone."""
    normaliser = both[..., -1:]
    return normaliser.masked_fill(normaliser == 0, torch.inf)


def least_divisor(q: Tensor) -> Tensor:
    """The normaliser (…, 1) of features φ(q) (…, C) below which a gradient is damped: it divides by this instead.

    A gradient multiplies the inverse of a normaliser by features of the query, and float32 has to hold the product.
    """
    return q.detach().amax(-1, keepdim=True) * STEEPEST


class _Factors(NamedTuple):
    """Factors of the products in a chunk that bring all of them to the scale of the query's own peak."""

    pairs: Tensor
    """(N, B·H, L, L) or (L, L), of query i and key j; zero where j > i."""
    past: Tensor | None = None
    """(N, B·H, L, 1), of query i and the state before the chunk."""
    keys: Tensor | None = None
    """(N, B·H, L, 1), of key j in the state after the chunk."""
    carry: Tensor | None = None
    """(N, B·H, 1, 1), of the state before the chunk in that after it."""


class _Span(NamedTuple):
    """Chunks that are worked on together."""

    start: int
    """The first position."""
    chunks: int
    """N."""
    size: int
    """L; the last span may have shorter chunks."""

    def of(self, x: Tensor) -> Tensor:
        """(B, H, T, …) to (N, B, H, L, …), the same memory."""
        there = x[:, :, self.start : self.start + self.chunks * self.size]
        by_chunk: Tensor = there.unflatten(2, (self.chunks, self.size)).movedim(2, 0)
        return by_chunk


class _Inputs(NamedTuple):
    """The inputs of :func:`chunkwise_linear_attention`, with methods that cut them into chunks."""

    q: Tensor
    k: Tensor
    v: Tensor
    log_scale: Tensor | None
    peaks: Tensor | None
    earlier: Tensor
    """(L, L), one where j ≤ i and zero elsewhere."""

    def spans(self) -> list[_Span]:
        """All positions."""
        (batch, heads, positions, c), v, size = self.q.shape, self.v.size(3), self.earlier.size(0)
        whole, rest = divmod(positions, size)
        together = max(1, ELEMENTS // (batch * heads * max(size * c, size * v, c * v)))
        spans = [_Span(n * size, min(together, whole - n), size) for n in range(0, whole, together)]
        return [*spans, _Span(positions - rest, 1, rest)] if rest else spans

    def cut(self, x: Tensor, span: _Span) -> Tensor:
        """(B, H, T, …) to (N, B·H, L, …)."""
        return span.of(x).flatten(1, 2).to(self.earlier.dtype).contiguous()

    def values(self, span: _Span) -> Tensor:
        """(N, B·H, L, V + 1)."""
        return with_ones(span.of(self.v).flatten(1, 2).to(self.earlier.dtype))

    def factors(self, span: _Span) -> _Factors:
        earlier = self.earlier[: span.size, : span.size]
        if self.log_scale is None or self.peaks is None:
            return _Factors(earlier)
        scales = self.cut(self.log_scale, span).clamp(min=LOWEST)  # (N, B·H, L)
        peaks = self.cut(self.peaks[:, :, 1:], span)
        before, last = self.cut(self.peaks[:, :, :-1], span)[..., :1], peaks[..., -1:]
        return _Factors(
            pairs=(scales.unsqueeze(-2) - peaks.unsqueeze(-1)).clamp_(max=0).exp_().mul_(earlier),
            past=(before - peaks).exp_().unsqueeze(-1),
            keys=(scales - last).exp_().unsqueeze(-1),
            carry=(before - last).exp_().unsqueeze(-1),
        )


def _times(x: Tensor, factor: Tensor | None) -> Tensor:
    return x if factor is None else x * factor


def _product(x: Tensor, y: Tensor, *, onto: Tensor | None = None) -> Tensor:
    """(N, B·H, a, b) times (N, B·H, b, c), added in place to ``onto`` if given."""
    x, y, shape = x.flatten(0, 1), y.flatten(0, 1), x.shape[:2]
    found = torch.bmm(x, y) if onto is None else onto.flatten(0, 1).baddbmm_(x, y)
    product: Tensor = found.unflatten(0, shape)
    return product


def _running(first: Tensor, k: Tensor, v: Tensor, carry: Tensor | None, *, backward: bool = False) -> Tensor:
    """Running sums of kᵀv over N chunks of (B·H, L, …), from ``first`` (B·H, C, V + 1): (1 + N, B·H, C, V + 1).

    With ``backward``, ``first`` belongs after the last chunk, and each sum is over the chunk and all later ones.
    """
    sums = first.new_empty(1 + len(k), *first.shape)
    sums[-1 if backward else 0] = first
    for n in reversed(range(len(k))) if backward else range(len(k)):
        here, there = (n + 1, n) if backward else (n, n + 1)
        before = _times(sums[here], None if carry is None else carry[n])
        torch.baddbmm(before, k[n].mT, v[n], out=sums[there])
    return sums


def _states(before: Tensor, k: Tensor, v: Tensor, factors: _Factors) -> Tensor:
    """The sums (1 + N, B·H, C, V + 1) before each chunk and after the last."""
    return _running(before, _times(k, factors.keys), v, factors.carry)


class Chunkwise(torch.autograd.Function):
    """The results, and the sums after the last position."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, before: Tensor, log_scale: Tensor | None, peaks: Tensor | None,
        size: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """From φ(q), φ(k), v, the sums before, scales and their peaks, and L."""
        earlier = before.new_ones(size, size).tril_()
        inputs = _Inputs(q, k, v, log_scale, peaks, earlier)
        sums, shape = before.flatten(0, 1), v.shape[:2]
        out, divisors = torch.empty_like(v), before.new_empty(*v.shape[:3], 1)
        for span in inputs.spans():  # what a span needs is released when its function returns
            both, sums = _attend(inputs, span, sums)
            z = divisor(both.unflatten(1, shape))  # (N, B, H, L, 1)
            span.of(divisors).copy_(z)
            torch.div(both.unflatten(1, shape)[..., :-1], z, out=span.of(out))
        ctx.save_for_backward(q, k, v, before, log_scale, peaks, earlier, out, divisors)
        return out, sums.view_as(before)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_sums: Tensor) -> tuple[Tensor | None, ...]:
        """Of φ(q), φ(k), v and the sums before."""
        q, k, v, before, log_scale, peaks, earlier, *results = ctx.saved_tensors
        inputs = _Inputs(q, k, v, log_scale, peaks, earlier)
        wanted = _Wanted(inputs, d_out, *results)
        with torch.autocast(q.device.type, enabled=False):
            d_q = _of_queries(inputs, before, wanted)
            d_k, d_v, d_before = _of_keys_and_values(inputs, d_sums, wanted)
        return d_q, d_k, d_v, d_before, None, None, None


def _attend(inputs: _Inputs, span: _Span, before: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over values and the normaliser, (N, B·H, L, V + 1), and the sums after the span."""
    q, k, v = inputs.cut(inputs.q, span), inputs.cut(inputs.k, span), inputs.values(span)
    factors = inputs.factors(span)
    states = _states(before, k, v, factors)
    a = _product(q, k.mT).mul_(factors.pairs)  # (N, B·H, L, L)
    past = _product(_times(q, factors.past), states[:-1])
    return _product(a, v, onto=past), states[-1].clone()


class _Wanted(NamedTuple):
    """The gradient of the sums over values and of the normaliser, computed chunk by chunk to save memory."""

    inputs: _Inputs
    d_out: Tensor
    out: Tensor
    divisors: Tensor

    def at(self, span: _Span) -> Tensor:
        """(N, B·H, L, V + 1)."""
        d_out, out, divisors = (span.of(x) for x in (self.d_out, self.out, self.divisors))
        divisors = torch.where(divisors > 0, divisors.maximum(least_divisor(span.of(self.inputs.q))), divisors)
        d = divisors.new_empty(*out.shape[:-1], out.size(-1) + 1)
        values = torch.div(d_out, divisors, out=d[..., :-1])
        torch.sum(values * out, -1, out=d[..., -1]).neg_()
        return d.flatten(1, 2)


def _of_queries(inputs: _Inputs, before: Tensor, wanted: _Wanted) -> Tensor:
    """The gradient of φ(q): as attention itself, with features and values in each other's place (equation 13)."""
    d_q, sums = torch.empty_like(inputs.q), before.flatten(0, 1)
    for span in inputs.spans():
        sums = _queries_of(inputs, span, sums, wanted.at(span), span.of(d_q))
    return d_q


def _queries_of(inputs: _Inputs, span: _Span, before: Tensor, d: Tensor, d_q: Tensor) -> Tensor:
    """Writes the gradient (N, B, H, L, C) of a span; returns the sums after it."""
    k, v, factors = inputs.cut(inputs.k, span), inputs.values(span), inputs.factors(span)
    states = _states(before, k, v, factors)
    d_a = _product(d, v.mT).mul_(factors.pairs)  # (N, B·H, L, L)
    past = _product(_times(d, factors.past), states[:-1].mT)
    d_q.copy_(_product(d_a, k, onto=past).view_as(d_q))
    return states[-1].clone()


def _of_keys_and_values(inputs: _Inputs, d_sums: Tensor, wanted: _Wanted) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of φ(k), v and the first state, from the last position to the first (equations 14 and 15)."""
    d_k, d_v = torch.empty_like(inputs.k), torch.empty_like(inputs.v)
    after = d_sums.flatten(0, 1)  # gradient of the sums from later queries and from the final state
    for span in reversed(inputs.spans()):
        after = _keys_and_values_of(inputs, span, after, wanted.at(span), span.of(d_k), span.of(d_v))
    return d_k, d_v, after.view_as(d_sums)


def _keys_and_values_of(inputs: _Inputs, span: _Span, after: Tensor, d: Tensor, d_k: Tensor, d_v: Tensor) -> Tensor:
    """Writes the gradients (N, B, H, L, …) of a span; returns that of the sums before it."""
    q, k, v = inputs.cut(inputs.q, span), inputs.cut(inputs.k, span), inputs.values(span)
    factors = inputs.factors(span)
    afters = _running(after, _times(q, factors.past), d, factors.carry, backward=True)
    d_a = _product(d, v.mT).mul_(factors.pairs)  # (N, B·H, L, L)
    past = _product(_times(v, factors.keys), afters[1:].mT)
    d_k.copy_(_product(d_a.mT, q, onto=past).view_as(d_k))
    a = _product(q, k.mT).mul_(factors.pairs)
    past = _product(_times(k, factors.keys), afters[1:, ..., :-1])
    d_v.copy_(_product(a.mT, d[..., :-1], onto=past).view_as(d_v))
    return afters[0].clone()
