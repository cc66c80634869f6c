"""Attention among similar positions, found by locality-sensitive hashing (Kitaev et al. 2020, section 2).

Queries and keys are one and the same, k_j = q_j / |q_j|. Each round draws random rotations R and puts a position into
the bucket h(x) = argmax [xR; -xR]. Positions are sorted by bucket and, within one, by place, and cut into chunks of m;
a query sees the keys of its bucket that are in its own chunk or in the one before it. Several rounds count as one
attention to all that any of them finds: each has the weight of its normaliser, in which a key that n rounds find
counts 1 / n (appendix A). A query sees itself only where there is nothing else.

Where a chunk ends depends on how many positions are in the buckets before it, later ones among them. So causal
attention of this kind knows a little of the future. Here a causal query sees,
instead, the last m keys before it in its bucket, which are always in the two chunks; what comes later changes nothing.
``published=True`` gives the chunks of the paper.

Shape letters: B batch, H heads, T positions, K width of queries and keys, V of values, R rounds, N chunks, m positions
of a chunk.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.softmax import masked_softmax


def lsh_buckets(x: Tensor, rotations: Tensor) -> Tensor:
    """Angular hashes: (B, H, T, K) to (B, H, R, T) int64, numbers below twice the last size of ``rotations``.

    Args:
        x: (B, H, T, K).
        rotations: (H, R, K, half as many as there are buckets).
    """
    rotated = torch.einsum("bhtk,hrkn->bhrtn", x, rotations.to(x.dtype))
    return torch.cat((rotated, -rotated), dim=-1).argmax(-1)


def lsh_attention(
    qk: Tensor, v: Tensor, buckets: Tensor, *, chunk: int, causal: bool = False, mask: Tensor | None = None,
    scale: float | None = None, published: bool = False,
) -> Tensor:  # fmt: skip
    """In time and memory that grow with T, if the number of buckets does: R · T · 2m pairs.

    Args:
        qk: (B, H, T, K), queries and, divided by their norms, keys.
        v: (B, H, T, V).
        buckets: (B, H, R, T) of :func:`lsh_buckets`.
        chunk: m.
        causal: whether a query sees only what is before it.
        mask: (B, T) bool, true at symbols, false at padding. No query sees padding; its results are zero.
        scale: of the scores; 1/√K unless given.
        published: whether a causal query sees by chunks, as in the paper, and not its last m keys.

    Returns:
        (B, H, T, V).
    """
    order, rank, buckets = _sorted(buckets, mask)
    near = _Near(chunk, causal, published)
    scale = 1 / math.sqrt(qk.size(-1)) if scale is None else scale
    places = _chunked(order, chunk, fill=-1)  # (B, H, R, N, m)
    seen = _seen(places, buckets, rank, mask, near)  # (B, H, R, N, m, 2m)
    q = _take(qk, places)
    scores = q @ _with_previous(functional.normalize(q, dim=-1)).mT * scale
    if buckets.size(2) > 1:
        scores = scores - _rounds_that_find(places, buckets, rank, near).clamp(min=1).to(scores.dtype).log()
    out = masked_softmax(scores, seen) @ _with_previous(_take(v, places))  # (B, H, R, N, m, V)
    z = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).logsumexp(-1)
    found = seen.any(-1)
    out, z, found = (_unsorted(x, rank) for x in (out, z, found))  # (B, H, R, T, …)
    mixed = (masked_softmax(z.mT, found.mT).unsqueeze(-2) @ out.transpose(2, 3)).squeeze(-2)  # (B, H, T, V)
    return _alone(mixed, v, found.any(2), mask)


def lsh_attention_weights(
    qk: Tensor, buckets: Tensor, *, chunk: int, causal: bool = False, mask: Tensor | None = None,
    scale: float | None = None, published: bool = False,
) -> Tensor:  # fmt: skip
    """The weights of :func:`lsh_attention` from its definition, all pairs at once: (B, H, T, T).

    Rows sum to one, or to zero at padding.
    """
    size = qk.size(2)
    _, rank, buckets = _sorted(buckets, mask)
    places = torch.arange(size, device=qk.device)
    before, apart = rank.unsqueeze(-1), rank.unsqueeze(-2)  # queries down, keys across
    if causal and not published:
        near = before - apart <= chunk
    else:
        near = (before // chunk - apart // chunk == 0) | (before // chunk - apart // chunk == 1)
    seen = (near & (buckets.unsqueeze(-1) == buckets.unsqueeze(-2))).any(2)  # (B, H, T, T)
    seen = seen & ((places[:, None] > places) if causal else (places[:, None] != places))
    words = torch.ones_like(places, dtype=torch.bool) if mask is None else mask[:, None, None]
    seen = seen & words
    scale = 1 / math.sqrt(qk.size(-1)) if scale is None else scale
    scores = qk @ functional.normalize(qk, dim=-1).mT * scale
    itself = torch.eye(size, dtype=qk.dtype, device=qk.device).expand(*seen.shape)
    return _alone(masked_softmax(scores, seen), itself, seen.any(-1), mask)


class LSHSelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself with shared queries and keys.

    The rotations are a buffer, so a checkpoint contains them, and repeated evaluations of a model agree. The training
    code calls :meth:`redraw` at intervals of its choice.

    Args:
        width: D of what comes in and goes out.
        heads: H.
        key_size: K.
        value_size: V.
        buckets: how many, an even number.
        chunk: m.
        rounds: R.
        bias: whether projections have one.
        published: see :func:`lsh_attention`.
    """

    rotations: Tensor

    def __init__(
        self, *, width: int, heads: int, key_size: int, value_size: int, buckets: int, chunk: int, rounds: int = 1,
        bias: bool = False, published: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if buckets % 2:
            raise ValueError(f"the number of buckets must be even, not {buckets}")
        self.heads, self.chunk, self.published = heads, chunk, published
        self.w_qk = nn.Linear(width, heads * key_size, bias=bias)
        self.w_v = nn.Linear(width, heads * value_size, bias=bias)
        self.w_o = nn.Linear(heads * value_size, width, bias=bias)
        for linear in (self.w_qk, self.w_v, self.w_o):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        self.register_buffer("rotations", torch.empty(heads, rounds, key_size, buckets // 2))
        self.redraw()

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw all rotations anew.

        Args:
            generator: of the random numbers, on the rotations' device; that device's own unless given.
        """
        self.rotations.normal_(generator=generator)

    def forward(
        self, x: Tensor, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from (B, T, D) to itself.

        Args:
            x: (B, T, D).
            mask: (B, T) bool, true at symbols, false at padding.
            causal: whether a query sees only what is before it, or itself.
            weights: whether they are wanted, which takes the time and memory of all pairs.

        Returns:
            (B, T, D), and the weights (B, H, T, T) of every head or None.
        """
        qk, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.w_qk, self.w_v))
        buckets = lsh_buckets(qk, self.rotations)
        a: Tensor | None = None
        if weights:
            a = lsh_attention_weights(qk, buckets, chunk=self.chunk, causal=causal, mask=mask, published=self.published)
            heads = a @ v
        else:
            heads = lsh_attention(qk, v, buckets, chunk=self.chunk, causal=causal, mask=mask, published=self.published)
        return self.w_o(heads.transpose(1, 2).flatten(2)), a


class _Near(NamedTuple):
    """Which keys of its bucket a query sees."""

    chunk: int
    causal: bool
    published: bool


def _sorted(buckets: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Which position is where in the order, where each position is in it, and the buckets; (B, H, R, T) each.

    Padding comes last, in a bucket of its own, so that it moves nothing else.
    """
    if mask is not None:
        buckets = buckets.masked_fill(~mask[:, None, None], torch.iinfo(buckets.dtype).max)
    order = buckets.argsort(dim=-1, stable=True)
    return order, order.argsort(dim=-1), buckets


def _chunked(x: Tensor, chunk: int, *, fill: int) -> Tensor:
    """(B, H, R, T) to (B, H, R, N, m), the last chunk filled up."""
    chunks: Tensor = functional.pad(x, (0, -x.size(-1) % chunk), value=fill).unflatten(-1, (-1, chunk))
    return chunks


def _take(x: Tensor, places: Tensor) -> Tensor:
    """(B, H, T, K) at places (B, H, R, N, m): (B, H, R, N, m, K). Entries at place -1 are undefined."""
    index = places.clamp(min=0).flatten(2).unsqueeze(-1).expand(-1, -1, -1, x.size(-1))
    taken: Tensor = x.gather(2, index).unflatten(2, places.shape[2:])
    return taken


def _with_previous(x: Tensor, *, fill: float = 0) -> Tensor:
    """(B, H, R, N, m, …) to (B, H, R, N, 2m, …): each chunk after the previous one, or after ``fill``."""
    first = torch.full_like(x[:, :, :, :1], fill)
    return torch.cat((torch.cat((first, x[:, :, :, :-1]), dim=3), x), dim=4)


def _pairs(x: Tensor, places: Tensor, r: int | None = None) -> tuple[Tensor, Tensor]:
    """The entries of (B, H, R, T) for each query (B, H, R, N, m, 1) and for its keys (B, H, R, N, 1, 2m).

    Args:
        x: one number for each position in each round.
        places: (B, H, R, N, m) of the queries.
        r: the round whose entries stand for all rounds; default: each round has its own.
    """
    index = places.clamp(min=0).flatten(3)  # (B, H, R, Nm)
    source = x if r is None else x[:, :, r : r + 1].expand_as(x)
    queries = source.gather(3, index).view_as(places)
    return queries.unsqueeze(-1), _with_previous(queries, fill=-1).unsqueeze(-2)


def _found(buckets: tuple[Tensor, Tensor], ranks: tuple[Tensor, Tensor], near: _Near) -> Tensor:
    """(B, H, R, N, m, 2m) whether a round finds the key for the query, by its bucket and by where it is."""
    (bucket, key_bucket), (rank, key_rank) = buckets, ranks
    if near.causal and not near.published:
        return (bucket == key_bucket) & (rank - key_rank <= near.chunk)
    chunks = rank // near.chunk - key_rank // near.chunk
    return (bucket == key_bucket) & (chunks >= 0) & (chunks <= 1)


def _seen(places: Tensor, buckets: Tensor, rank: Tensor, mask: Tensor | None, near: _Near) -> Tensor:
    """(B, H, R, N, m, 2m) which of the keys in its two chunks a query sees."""
    query, key = places.unsqueeze(-1), _with_previous(places, fill=-1).unsqueeze(-2)
    seen = _found(_pairs(buckets, places), _pairs(rank, places), near) & (query >= 0) & (key >= 0)
    seen = seen & ((key < query) if near.causal else (key != query))
    if mask is None:
        return seen
    words = mask[:, None, None].expand_as(buckets)
    return seen & _pairs(words.long(), places)[1].eq(1)


def _rounds_that_find(places: Tensor, buckets: Tensor, rank: Tensor, near: _Near) -> Tensor:
    """(B, H, R, N, m, 2m) how many rounds find the pairs that each round finds."""
    rounds = range(buckets.size(2))
    found = (_found(_pairs(buckets, places, r), _pairs(rank, places, r), near) for r in rounds)
    return reduce(torch.add, (pairs.int() for pairs in found))


def _unsorted(x: Tensor, rank: Tensor) -> Tensor:
    """(B, H, R, N, m, …) in the order of buckets to (B, H, R, T, …) in that of positions."""
    flat = x.flatten(3, 4)
    index = rank.view(*rank.shape, *[1] * (flat.dim() - 4)).expand(*rank.shape, *flat.shape[4:])
    return flat.gather(3, index)


def _alone(out: Tensor, itself: Tensor, found: Tensor, mask: Tensor | None) -> Tensor:
    """``itself`` where a position found nothing, and zero at padding."""
    out = torch.where(found.unsqueeze(-1), out, itself)
    return out if mask is None else out.masked_fill(~mask[:, None, :, None], 0)
