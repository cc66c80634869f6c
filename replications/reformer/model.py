"""Reformer (Kitaev, Kaiser & Levskaya 2020): reversible layers around attention among similar positions.

Attention by hashing, section 2, is in ``shared/attention/lsh.py``; here are shared queries and keys without it, the
reversible layers of section 3 with their backward pass, and feed-forward networks in chunks. Embeddings, feed-forward
networks and the output are those of ``shared/layers/transformer.py``, with the norm before each sub-layer.

Shape letters: B sequences, T symbols, D model width, H heads, K width of a head's queries, keys and values, R rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.lsh import lsh_attention, lsh_buckets
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as
from shared.layers.outputs import CategoricalOutput
from shared.layers.positions import LearnedPositions
from shared.layers.transformer import SelfAttention, SequenceTransformer

Kind = Literal["full", "shared", "lsh"]
"""Queries and keys of their own; queries that are the keys; or these, and only what hashes find."""


class ReformerAttention(SelfAttention):
    """Attention in H heads (section 2).

    Shared queries and keys, k_j = q_j / |q_j|, leave a position itself out unless there is nothing else.

    Args:
        kind: see :data:`Kind`.
        width: D.
        heads: H.
        rounds, buckets, chunk: of hashing, see :mod:`shared.attention.lsh`.
    """

    rotations: Tensor

    def __init__(self, *, kind: Kind, width: int, heads: int, rounds: int, buckets: int, chunk: int) -> None:
        super().__init__()
        self.kind, self.heads, self.chunk = kind, heads, chunk
        self.w_q, self.w_v, self.w_o = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.w_k = nn.Linear(width, width, bias=False) if kind == "full" else None
        if kind == "lsh":
            self.register_buffer("rotations", torch.randn(heads, rounds, width // heads, buckets // 2))

    def redraw(self, generator: torch.Generator) -> None:
        """Draw the rotations of all rounds anew."""
        if self.kind == "lsh":
            self.rotations.normal_(generator=generator)

    def hashes(self, x: Tensor) -> Tensor | None:
        """The buckets (B, H, R, T) of (B, T, D), which the backward pass is not to draw anew; None without hashing."""
        if self.kind != "lsh":
            return None
        return lsh_buckets(self._split(self.w_q, x), self.rotations).short()

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool, buckets: Tensor | None = None) -> Tensor:
        """See :class:`SelfAttention`; ``buckets`` are those of :meth:`hashes`, which are found unless given."""
        q, v = self._split(self.w_q, x), self._split(self.w_v, x)
        if self.kind == "lsh":
            found = self.hashes(x) if buckets is None else buckets
            assert found is not None, "attention by hashing hashes"
            heads = lsh_attention(q, v, found, chunk=self.chunk, causal=causal, mask=mask)
        else:
            k = functional.normalize(q, dim=-1) if self.w_k is None else self._split(self.w_k, x)
            seen = self._seen(x, mask, causal)
            heads = masked_softmax(q @ k.mT / math.sqrt(q.size(-1)), seen) @ v  # equation 1
        return self.w_o(heads.transpose(1, 2).flatten(2))

    def _seen(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B or 1, 1, T, T) bool: P_i of equation 2."""
        seen = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device)
        itself = torch.eye(len(seen), dtype=torch.bool, device=x.device)
        seen = seen.tril() if causal else seen
        seen = seen[None, None] if mask is None else seen & mask[:, None, None]
        if self.w_k is None:
            seen = seen & ~itself
            seen = seen | itself & ~seen.any(-1, keepdim=True)
        return seen

    def _split(self, w: nn.Module, x: Tensor) -> Tensor:
        """(B, T, D) to (B, H, T, K)."""
        return w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Streams:
    """F and G of a layer: Attention and FeedForward of equation 9, each after its norm.

    Args:
        layer: a :class:`shared.layers.transformer.Layer`, whose parts these are.
        mask: (B, T) bool, true at symbols; None if all are.
        causal: whether position i sees those up to i only.
        size: positions of a chunk of G; None: all.
    """

    def __init__(self, layer: Any, mask: Tensor | None, causal: bool, size: int | None) -> None:
        self.layer, self.mask, self.causal, self.size = layer, mask, causal, size
        self.of_f = [*layer.attention_norm.parameters(), *layer.attention.parameters()]
        self.of_g = [*layer.feed_forward_norm.parameters(), *layer.feed_forward.parameters()]

    def hashes(self, x2: Tensor) -> Tensor | None:
        """Of F's attention."""
        return self.layer.attention.hashes(self.layer.attention_norm(x2))

    def f(self, x2: Tensor, buckets: Tensor | None = None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self.layer.attention(self.layer.attention_norm(x2), self.mask, self.causal, buckets)

    def g(self, y1: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), of any positions apart from the others."""
        return self.layer.feed_forward(self.layer.feed_forward_norm(y1))

    def chunks(self, x: Tensor) -> Sequence[Tensor]:
        """(B, T, D) in chunks of positions."""
        return x.split(self.size or x.size(1), dim=1)

    def chunked(self, y1: Tensor) -> Tensor:
        """G, a chunk at a time (equation 10)."""
        return torch.cat([self.g(part) for part in self.chunks(y1)], dim=1)


def reversibly(x1: Tensor, x2: Tensor, layers: Sequence[Streams]) -> tuple[Tensor, Tensor]:
    """The twin of :func:`two_streams`: its backward pass needs no more than Y_1 and Y_2 of the last layer."""
    parameters = [p for layer in layers for p in (*layer.of_f, *layer.of_g)]
    y1, y2 = _Reversible.apply(x1, x2, layers, *parameters)  # type: ignore[no-untyped-call]
    return y1, y2


@runs_as(reversibly)
def two_streams(x1: Tensor, x2: Tensor, layers: Sequence[Streams]) -> tuple[Tensor, Tensor]:
    """Y_1 = X_1 + Attention(X_2), Y_2 = X_2 + FeedForward(Y_1) in every layer (equation 9); (B, T, D) each."""
    for layer in layers:
        x1 = x1 + layer.f(x2)
        x2 = x2 + layer.chunked(x1)
    return x1, x2


class _Reversible(torch.autograd.Function):
    """From the last layer to the first, inputs are found again by equation 8: X_2 = Y_2 - G(Y_1), X_1 = Y_1 - F(X_2).

    With y the gradient by Y and so on: x_1 = y_1 + G'ᵀ y_2, and x_2 = y_2 + F'ᵀ x_1. Hashes are kept, since a
    position that is found again up to rounding could else be in another bucket.
    """

    @staticmethod
    def forward(
        ctx: Any, x1: Tensor, x2: Tensor, layers: Sequence[Streams], *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.layers, hashes = layers, []
        for layer in layers:
            hashes.append(layer.hashes(x2))
            x1 = x1 + layer.f(x2, hashes[-1])
            x2 = x2 + layer.chunked(x1)
        ctx.save_for_backward(x1, x2, *hashes)
        return x1, x2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        y1, y2, *hashes = ctx.saved_tensors
        d1, d2 = gradients
        found: list[Tensor] = []
        for layer, buckets in zip(reversed(ctx.layers), reversed(hashes), strict=True):
            fed, of_y1, of_g = _chunked_gradient(layer, y1, d2)
            d1, x2 = d1 + of_y1, y2 - fed
            attended, of_x2, of_f = _gradient(partial(layer.f, buckets=buckets), x2, layer.of_f, d1)
            d2, y1, y2 = d2 + of_x2, y1 - attended, x2
            found = [*of_f, *of_g, *found]
        return d1, d2, None, *found


def _gradient(
    function: Callable[[Tensor], Tensor], x: Tensor, parameters: Sequence[Tensor], d: Tensor
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """The value of a function at x, and what the gradient d by it is by x and by the parameters."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        out = function(x)
    of_x, *of_parameters = torch.autograd.grad(out, (x, *parameters), d)
    return out.detach(), of_x, of_parameters


def _chunked_gradient(layer: Streams, y1: Tensor, d2: Tensor) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """What :func:`_gradient` says of G, a chunk at a time."""
    fed, of_y1, of_g = [], [], list[Tensor]()
    for y, d in zip(layer.chunks(y1), layer.chunks(d2), strict=True):
        out, of_y, own = _gradient(layer.g, y, layer.of_g, d)
        fed.append(out)
        of_y1.append(of_y)
        of_g = [a + b for a, b in zip(of_g, own, strict=True)] if of_g else list(own)
    return torch.cat(fed, dim=1), torch.cat(of_y1, dim=1), of_g


class Reformer(SequenceTransformer):
    """Symbols to the states that predict the next ones.

    Reversible layers carry two streams, which begin alike, as the embeddings, and end side by side. Without them it is
    the usual residual Transformer.

    Args:
        symbols: of the vocabulary.
        layers, heads, width, hidden: how many, H, D and the width of the feed-forward networks.
        attention: see :data:`Kind`.
        rounds, buckets, chunk: of hashing.
        reversible: whether layers are.
        feed_forward_chunk: positions that go through a feed-forward network of reversible layers together; None: all.
        length: of the longest sequence; each of its positions has a learned vector.
        causal: whether position i sees those up to i only.
    """

    def __init__(
        self, *, symbols: int, layers: int, heads: int, width: int, hidden: int, attention: Kind, rounds: int,
        buckets: int, chunk: int, reversible: bool, feed_forward_chunk: int | None, length: int, causal: bool,
    ) -> None:  # fmt: skip
        ends = 2 * width if reversible else width
        positions = LearnedPositions(count=length, width=width)
        nn.init.normal_(positions.table)  # as the embeddings, so that places count as much as symbols
        super().__init__(
            symbols=symbols, width=width, hidden_size=hidden, layers=layers, causal=causal, norm="pre", length=length,
            attentions=lambda: ReformerAttention(
                kind=attention, width=width, heads=heads, rounds=rounds, buckets=buckets, chunk=chunk
            ),
            positions=positions,
            output=lambda: CategoricalOutput(width=ends, symbols=symbols),
        )  # fmt: skip
        self.reversible, self.feed_forward_chunk = reversible, feed_forward_chunk
        self.norm = nn.LayerNorm(ends)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Symbols (B, T) to states (B, T, 2 D), or D without reversible layers."""
        if not self.reversible:
            return super().forward(inputs, mask)
        x = self._embedded(inputs, 0)
        layers = [Streams(layer, mask, self.causal, self.feed_forward_chunk) for layer in self.layers]
        return self.norm(torch.cat(two_streams(x, x, layers), dim=-1))
