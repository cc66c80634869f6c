"""Attention whose heads learn how far they look back (Sukhbaatar, Grave, Bojanowski & Joulin 2019).

A Transformer that caches the states of earlier segments, with relative positions, and a soft mask on the weights of
each head. Sections are those of the ACL paper, arXiv 1905.07799; letters are the paper's.

Shape letters: B columns, T symbols of a segment, N positions of cache and segment, D model width, H heads, K width of a
head, L span limit (the paper's S), V vocabulary.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.multi_head import KeysValues
from shared.attention.relative import by_distance, shift
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as
from shared.decoding.protocol import Reach
from shared.layers.outputs import CategoricalOutput
from shared.layers.transformer import FeedForward, Layer


def distances(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """t − r of the queries, which are the last positions, and all keys: (T, N)."""
    places = torch.arange(keys, device=device)
    return places[keys - queries :].unsqueeze(1) - places


def soft_mask(x: Tensor, z: Tensor, ramp: int) -> Tensor:
    """m_z(x) = min(max((R + z − x) / R, 0), 1) (section 2.2): distances (T, N) and spans z (H,) to (H, T, N)."""
    return ((ramp + z.view(-1, 1, 1) - x) / ramp).clamp(0, 1)


def looked_at(z: Tensor, ramp: int, limit: int) -> Tensor:
    """How many symbols before it a head looks at with any weight, (H,): those with m_z(x) > 0, of L; one at least."""
    return torch.ceil(z.detach() + ramp - 1).clamp(1, limit)


def attend_within_spans(
    q: Tensor, k: Tensor, v: Tensor, p: Tensor, z: Tensor | None, ramp: int, dropout: float
) -> Tensor:
    """The twin of :func:`attend`: no vector for a pair, and no key beyond the longest span of any head.

    Products of queries and distances are moved to the keys, row by row one place further (``shift``).
    """
    reach = len(p) if z is None else int(looked_at(z, ramp, len(p)).max())
    keep = min(k.size(2), reach + q.size(2))
    k, v = k[:, :, -keep:], v[:, :, -keep:]
    table = by_distance(torch.cat((p[:1], p[:reach])), keep)  # (keep, K); distance 0 is not looked at
    by_place = q @ functional.pad(table, (0, 0, 0, 1)).mT  # (B, H, T, keep + 1)
    scores = (q @ k.mT + shift(by_place)) / math.sqrt(q.size(-1))
    x = distances(q.size(2), keep, q.device)
    seen = (x >= 1) & (x <= reach)
    if z is None:
        return functional.dropout(masked_softmax(scores, seen), dropout) @ v
    m = soft_mask(x, z, ramp)
    a = masked_softmax(scores, seen & (m > 0)) * m
    a = a / a.sum(-1, keepdim=True).clamp(min=torch.finfo(a.dtype).tiny)
    return functional.dropout(a, dropout) @ v


@runs_as(attend_within_spans)
def attend(q: Tensor, k: Tensor, v: Tensor, p: Tensor, z: Tensor | None, ramp: int, dropout: float) -> Tensor:
    """Section 2: s_tr = q_tᵀ (k_r + p_{t−r}) / √K, w_tr = m_z(t − r) exp(s_tr), a_tr = w_tr / Σ_q w_tq, Σ a_tr v_r.

    A symbol looks at the L before it, not at itself. Where none is left the result is zero.

    Args:
        q: (B, H, T, K), the last of the positions.
        k: (B, H, N, K).
        v: (B, H, N, K).
        p: (L, K), the vectors of the distances 1 … L.
        z: (H,) spans; None: all heads look L back, m is 1.
        ramp: R.
        dropout: probability with which a weight is dropped.

    Returns:
        (B, H, T, K).
    """
    x = distances(q.size(2), k.size(2), q.device)  # (T, N)
    seen = (x >= 1) & (x <= len(p))
    s = q @ k.mT + torch.einsum("bhtk,tnk->bhtn", q, p[(x - 1).clamp(0, len(p) - 1)])
    m = seen.to(q.dtype) if z is None else soft_mask(x, z, ramp) * seen
    s = (s / math.sqrt(q.size(-1))).masked_fill(m == 0, torch.finfo(s.dtype).min)
    weights = m * torch.exp(s - s.amax(-1, keepdim=True).detach())
    a = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(s.dtype).tiny)
    return functional.dropout(a, dropout) @ v


class SpanAttention(nn.Module):
    """Attention of H heads to the symbols before, each within its span.

    Args:
        width: D.
        heads: H.
        limit: L.
        ramp: R; None: spans are not learned, and all heads look L back.
        dropout: of weights.
    """

    def __init__(self, *, width: int, heads: int, limit: int, ramp: int | None, dropout: float) -> None:
        super().__init__()
        self.heads, self.limit, self.ramp, self.dropout = heads, limit, ramp, dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.share = None if ramp is None else nn.Parameter(torch.zeros(heads))  # z / L

    def z(self) -> Tensor | None:
        """The spans z (H,), in [0, L]; what an update has moved beyond is moved back, in training."""
        if self.share is None:
            return None
        if self.training:
            self.share.data.clamp_(0, 1)
        return self.limit * self.share.clamp(0, 1)

    def spans(self) -> Tensor:
        """How many symbols each head looks back at with any weight, its ramp included: (H,), at most L."""
        z = self.z()
        if z is None:
            return self.w_q.weight.new_full((self.heads,), self.limit)
        return looked_at(z, self.ramp or 0, self.limit)

    def project(self, context: Tensor) -> KeysValues:
        """(B, N, D) to keys and values (B, H, N, K)."""
        return self._split(self.w_k(context)), self._split(self.w_v(context))

    def forward(self, h: Tensor, context: KeysValues, p: Tensor) -> Tensor:
        """(B, T, D), with keys and values of cache and segment and p (L, K), to (B, T, D)."""
        dropout = self.dropout if self.training else 0.0
        out: Tensor = attend(self._split(self.w_q(h)), *context, p, self.z(), self.ramp or 0, dropout)
        return self.w_o(out.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, H, T, K)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Cache:
    """What the layers have read in earlier segments: a :class:`shared.decoding.protocol.Memory`.

    Args:
        reach: how many symbols are kept.
        empty: (layers, B, 0, D).
    """

    def __init__(self, reach: Reach, empty: Tensor) -> None:
        self.reach, self.held = reach, empty

    def keep(self, read: list[Tensor]) -> None:
        """Add what the layers read, (B, T, D) each, without its gradient, and forget what is older."""
        held = torch.cat((self.held, torch.stack(read).detach()), dim=2)
        self.held = held[:, :, max(0, held.size(2) - self.reach.memory) :]

    def clear(self) -> None:
        """Forget everything."""
        self.held = self.held[:, :, :0]

    def state_dict(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        return {"held": self.held}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """From a checkpoint."""
        self.held = state["held"].to(self.held)


class AdaptiveSpanTransformer(nn.Module):
    """A :class:`shared.decoding.protocol.LanguageModel`.

    Args:
        vocabulary: V.
        layers, heads, width, hidden: their numbers, D and the width of the feed-forward networks.
        limit: L.
        ramp: R; None: spans are not learned.
        penalty: λ.
        dropout: of attention's weights and inside of the feed-forward networks.
    """

    layers: Any

    def __init__(
        self, *, vocabulary: int, layers: int, heads: int, width: int, hidden: int, limit: int, ramp: int | None,
        penalty: float, dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.penalty, self.width = penalty, width
        self.embedding = nn.Embedding(vocabulary, width)
        self.p = nn.Parameter(torch.randn(limit, width // heads))  # shared by all heads and layers
        self.layers = nn.ModuleList(
            Layer(
                width=width, dropout=0.0,
                attention=SpanAttention(width=width, heads=heads, limit=limit, ramp=ramp, dropout=dropout),
                feed_forward=FeedForward(width=width, hidden_size=hidden, dropout=dropout, xavier=False),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.output = CategoricalOutput(width=width, symbols=vocabulary)

    def memory(self, columns: int, reach: Reach) -> Cache:
        """An empty cache of B texts; a span goes no further back than it."""
        return Cache(reach, self.p.new_empty(len(self.layers), columns, 0, self.width))

    def states(self, inputs: Tensor, memory: Cache | None) -> Tensor:
        """Symbols (B, T) to the states (B, T, D) that predict what follows each; the cache moves on."""
        memory = self.memory(len(inputs), Reach(0)) if memory is None else memory
        h: Tensor = self.embedding(inputs)
        read = list[Tensor]()
        for layer, held in zip(self.layers, memory.held, strict=True):
            read.append(h)
            context = layer.attention.project(torch.cat((held.to(h.dtype), h), dim=1))
            h = layer(h, partial(layer.attention, context=context, p=self.p))
        memory.keep(read)
        return h

    def span_loss(self) -> Tensor:
        """(λ / H) Σ z_i over the heads of a layer, summed over the layers (the loss of section 2.2)."""
        spans = [z.mean() for layer in self.layers if (z := layer.attention.z()) is not None]
        return self.penalty * torch.stack(spans).sum() if spans else self.p.new_zeros(())

    def forward(self, inputs: Tensor, targets: Tensor, memory: Cache | None = None) -> Tensor:
        """−log p of every target after the inputs up to its place: (B, T) and (B, T) to (B, T) nats.

        In training each has the penalty on spans in it, so that a mean over targets has it once.
        """
        nats: Tensor = self.output(self.states(inputs, memory), targets)
        return nats + self.span_loss() if self.training else nats

    def next_log_probs(self, inputs: Tensor, memory: Cache | None = None) -> Tensor:
        """Log-probabilities (B, V) of what follows the last of the inputs (B, T)."""
        return self.output.log_probs(self.states(inputs, memory)[:, -1])
