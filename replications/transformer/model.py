"""Attention is all you need (Vaswani et al., NeurIPS 2017).

The whole model, top to bottom: scaled dot-product attention, heads, layers, encoder and decoder, training and decoding.
PyTorch's fused kernel runs in place of :func:`attention` (:mod:`shared.attention.twins`). Papers that change one part
of it build on ``shared/layers/transformer.py``. Sections, equations and names are those of arXiv 1706.03762v5.

Shape letters: B batch, S source length (end symbol included), T target length, k beams, D model width (d_model),
N layers, H heads, K key width (d_k), V value width (d_v) or, of logits, vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.scaled_dot_product import fused_attention
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as
from shared.decoding.key_value_cache import KeyValueCache
from shared.decoding.protocol import select_sources

KeysValues = tuple[Tensor, Tensor]
"""Keys (B, H, S, K) and values (B, H, S, V)."""


def weights(q: Tensor, k: Tensor, *, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """softmax(Q Kᵀ / √d_k) for queries (B, H, T, K) and keys (B, H, S, K): (B, H, T, S).

    Args:
        q: queries.
        k: keys.
        mask: bool, broadcastable to (B, H, T, S), true where a query may look; None for everywhere.
        causal: instead of ``mask``: a position sees itself and those before it (section 3.2.3).
        scale: 1/√d_k.
    """
    if causal:
        mask = torch.ones(q.size(2), k.size(2), dtype=torch.bool, device=q.device).tril()
    scores = q @ k.mT * scale
    return torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)


@runs_as(fused_attention)
def attention(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """softmax(Q Kᵀ / √d_k) V, equation (1): (B, H, T, K), (B, H, S, K) and (B, H, S, V) to (B, H, T, V)."""
    return weights(q, k, mask=mask, causal=causal, scale=scale) @ v


class MultiHeadAttention(nn.Module):
    """Concat(head_1 … head_H) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V) (section 3.2.2).

    The matrices of all heads stand side by side in one, and those of keys and values, which read the same, too.

    Args:
        width: D.
        heads: H.
        key_size: K.
        value_size: V.
        scaled: whether scores are divided by √K, as in the paper.
    """

    def __init__(self, *, width: int, heads: int, key_size: int, value_size: int, scaled: bool) -> None:
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(key_size) if scaled else 1.0
        self.sizes = (heads * key_size, heads * value_size)
        self.w_q = nn.Linear(width, heads * key_size, bias=False)
        self.w_kv = nn.Linear(width, sum(self.sizes), bias=False)
        self.w_o = nn.Linear(heads * value_size, width, bias=False)
        for w in (self.w_q.weight, *self.w_kv.weight.split(self.sizes), self.w_o.weight):
            nn.init.xavier_uniform_(w)

    def project(self, memory: Tensor) -> KeysValues:
        """K W_i^K and V W_i^V of what is attended to (B, S, D), for a source once."""
        k, v = (x.unflatten(2, (self.heads, -1)).transpose(1, 2) for x in self.w_kv(memory).split(self.sizes, dim=2))
        return k, v

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, wanted: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """(B, T, D) to (B, T, D), and to the weights (B, H, T, S) if they are wanted; see :func:`weights`."""
        (k, v), q = memory, self.w_q(x).unflatten(2, (self.heads, -1)).transpose(1, 2)  # (B, H, T, K)
        a = weights(q, k, mask=mask, causal=causal, scale=self.scale) if wanted else None
        heads = attention(q, k, v, mask=mask, causal=causal, scale=self.scale) if a is None else a @ v
        return self.w_o(heads.transpose(1, 2).flatten(2)), a


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2), position by position: (B, T, D) to (B, T, D)."""

    def __init__(self, *, width: int, hidden_size: int) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(width, hidden_size), nn.Linear(hidden_size, width)
        for linear in (self.w_1, self.w_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        return self.w_2(torch.relu(self.w_1(x)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward network, each LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1, 5.4)."""

    def __init__(
        self, *, width: int, heads: int, key_size: int, value_size: int, hidden_size: int, dropout: float, scaled: bool
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            width=width, heads=heads, key_size=key_size, value_size=value_size, scaled=scaled
        )
        self.feed_forward = FeedForward(width=width, hidden_size=hidden_size)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, *, wanted: bool = False) -> tuple[Tensor, Tensor | None]:
        """(B, S, D) under the mask (B, 1, 1, S) to (B, S, D), and to the weights (B, H, S, S) if they are wanted."""
        z, a = self.attention(x, self.attention.project(x), mask=mask, wanted=wanted)
        x = self.attention_norm(x + self.dropout(z))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x))), a


class DecoderLayer(nn.Module):
    """As :class:`EncoderLayer`, with attention to the encoder's output between the two (section 3.1)."""

    def __init__(
        self, *, width: int, heads: int, key_size: int, value_size: int, hidden_size: int, dropout: float, scaled: bool
    ) -> None:
        super().__init__()
        self.attention, self.source_attention = (
            MultiHeadAttention(width=width, heads=heads, key_size=key_size, value_size=value_size, scaled=scaled)
            for _ in range(2)
        )
        self.feed_forward = FeedForward(width=width, hidden_size=hidden_size)
        self.attention_norm, self.source_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, y: Tensor, past: KeysValues, memory: KeysValues, *, past_mask: Tensor | None, causal: bool,
        memory_mask: Tensor, wanted: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
        """One layer over all target positions, or over the newest alone.

        Args:
            y: (B, T, D).
            past: keys and values of the layer's self-attention at all visible positions, including those of y.
            memory: keys and values of the encoder's output.
            past_mask: which of the past's C positions one of y sees, broadcastable to (B, H, T, C).
            causal: instead of ``past_mask``: position t sees those up to t.
            memory_mask: (B, 1, 1, S), true at source symbols.
            wanted: whether weights are.

        Returns:
            (B, T, D), and the weights of self-attention (B, H, T, C) and of attention to the source (B, H, T, S).
        """
        z, a = self.attention(y, past, mask=past_mask, causal=causal, wanted=wanted)
        y = self.attention_norm(y + self.dropout(z))
        z, b = self.source_attention(y, memory, mask=memory_mask, wanted=wanted)
        y = self.source_norm(y + self.dropout(z))
        return self.feed_forward_norm(y + self.dropout(self.feed_forward(y))), a, b


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from symbol to symbol; all of it belongs to sources, whose beams share it."""

    memory: list[KeysValues]  # of the encoder's output, for each layer
    mask: Tensor  # (B, 1, 1, S), true at source symbols
    cache: KeyValueCache  # of the target symbols so far
    t: int  # target position, from 0


class Transformer(nn.Module):
    """Encoder and decoder with one matrix for both embeddings and the softmax (section 3.4).

    Args:
        vocabulary: V, symbols of source and target together.
        width: D (512).
        layers: N of the encoder, and of the decoder (6).
        heads: H (8).
        key_size: K (64).
        value_size: V (64).
        hidden_size: d_ff (2048).
        dropout: P_drop, on every sub-layer's output and on the sums of embeddings and positions (0.1).
        positions: from a range of positions to their encodings, see :mod:`shared.layers.positions`.
        scaled: whether scores are divided by √K, as in the paper.
    """

    encoder: Any
    decoder: Any

    def __init__(
        self, *, vocabulary: int, width: int, layers: int, heads: int, key_size: int, value_size: int,
        hidden_size: int, dropout: float, positions: nn.Module, scaled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)  # times √D, and in the softmax, of unit variance
        self.positions = positions
        self.encoder, self.decoder = (
            nn.ModuleList(
                layer(
                    width=width, heads=heads, key_size=key_size, value_size=value_size, hidden_size=hidden_size,
                    dropout=dropout, scaled=scaled,
                )
                for _ in range(layers)
            )
            for layer in (EncoderLayer, DecoderLayer)
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout)

    def embed(self, symbols: Tensor, start: int = 0) -> Tensor:
        """√D · E[symbol] + PE (sections 3.4, 3.5) of (B, L) symbols at positions from ``start``: (B, L, D)."""
        e = self.embedding(symbols) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(e + self.positions(start, start + symbols.size(1)))

    def encode(self, source: Tensor, mask: Tensor, *, wanted: bool = False) -> tuple[Tensor, list[Tensor]]:
        """(B, S) symbols under the mask (B, 1, 1, S) to (B, S, D), and every layer's weights if they are wanted."""
        x, found = self.embed(source), []
        for layer in self.encoder:
            x, a = layer(x, mask, wanted=wanted)
            found.append(a)
        return x, found

    def decode(self, y: Tensor, state: DecoderState, *, step: bool, wanted: range) -> tuple[Tensor, list[list[Tensor]]]:
        """Embedded target symbols (B, T, D) to the decoder's output (B, T, D).

        Args:
            y: all symbols from the first on, or at a step the newest symbol of each beam (T = k). Each of these sees
                itself and the cached positions of its beam's ancestors.
            state: of the source; at a step the cache is opened for it.
            step: which of the two.
            wanted: the layers whose weights are.

        Returns:
            (B, T, D), and of the layers asked for the weights (B, H, T, ·) on the target and on the source.
        """
        found = []
        for n, (layer, memory) in enumerate(zip(self.decoder, state.memory, strict=True)):
            past, past_mask = layer.attention.project(y), None
            if step:
                past, past_mask = state.cache.write(n, *past), state.cache.mask
            y, *weights = layer(
                y, past, memory, past_mask=past_mask, causal=not step, memory_mask=state.mask, wanted=n in wanted
            )
            if n in wanted:
                found.append(weights)
        return y, found

    def logits(self, y: Tensor) -> Tensor:
        """(B, T, D) to (B, T, V), by the embedding matrix."""
        return nn.functional.linear(y, self.embedding.weight)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing.

        Args:
            source: (B, S) symbols, the end symbol last.
            source_mask: (B, S) bool, true at symbols.
            target: (B, T) the symbol before each predicted one, beginning with the start symbol.

        Returns:
            Logits (B, T, V), and in evaluation mode the last layer's attention to the source, mean over heads,
            (B, T, S); training does not compute it.
        """
        state = self.start(source, source_mask)
        wanted = range(0) if self.training else self._last
        y, found = self.decode(self.embed(target), state, step=False, wanted=wanted)
        return self.logits(y), None if self.training else found[0][1].mean(1)

    def attention_maps(self, source: Tensor, source_mask: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Every head's weights, for arguments as in :meth:`forward`.

        Returns:
            ``encoder`` (N, B, H, S, S), ``decoder`` (N, B, H, T, T) and ``cross`` (N, B, H, T, S).
        """
        x, encoder = self.encode(source, source_mask[:, None, None], wanted=True)
        y, state, every = self.embed(target), self._state(x, source_mask), range(len(self.decoder))
        decoder, cross = zip(*self.decode(y, state, step=False, wanted=every)[1], strict=True)
        return {"encoder": torch.stack(encoder), "decoder": torch.stack(decoder), "cross": torch.stack(cross)}

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """Encode (B, S) source symbols under their mask (B, S)."""
        return self._state(self.encode(source, mask[:, None, None])[0], mask)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """One symbol further: previous symbols (B, k) to log p (B, k, V), weights (B, k, S) and the next state."""
        state.cache.open(tokens.size(1), state.t)
        e = self.embed(tokens.view(-1, 1), state.t).view(*tokens.shape, -1)  # (B, k, D), all at position t
        y, found = self.decode(e, state, step=True, wanted=self._last)
        log_p = torch.log_softmax(self.logits(y), dim=-1)  # (B, k, V)
        return log_p, found[0][1].mean(1), replace(state, t=state.t + 1)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        state.cache.reorder(sources, beams)
        memory = [(select_sources(k, sources), select_sources(v, sources)) for k, v in state.memory]
        return replace(state, memory=memory, mask=select_sources(state.mask, sources))

    def _state(self, x: Tensor, mask: Tensor) -> DecoderState:
        """Before the first target symbol, from the encoder's output (B, S, D) and its mask (B, S)."""
        memory = [layer.source_attention.project(x) for layer in self.decoder]
        return DecoderState(memory, mask[:, None, None], KeyValueCache(len(x), x.device), 0)

    @property
    def _last(self) -> range:
        """The last layer."""
        return range(len(self.decoder) - 1, len(self.decoder))
