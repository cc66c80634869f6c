"""A Transformer for translation around any attention, so that a paper implements its attention only.

Embeddings, layers, teacher forcing, and decoding with a cache of keys and values are those of Vaswani et al. (2017),
whose own equations stand in one piece in the model of that paper.

Shape letters: B batch, S source length (end symbol included), T target length, D model width, N layers, H heads, K key
width, V value width or, of logits, vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.multi_head import KeysValues
from shared.decoding.key_value_cache import KeyValueCache
from shared.decoding.protocol import select_sources
from shared.layers.feed_forward import FeedForward


class Attention(Protocol):
    """What a layer attends with, :class:`shared.attention.multi_head.MultiHeadAttention` or its like."""

    heads: int
    key_size: int
    value_size: int

    def project(self, memory: Tensor) -> KeysValues:
        """(B, S, D) to keys (B, H, S, K) and values (B, H, S, V)."""
        ...

    def __call__(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Queries (B, T, D) to (B, T, D), and weights (B, H, T, S) if they are wanted.

        Args:
            x: (B, T, D).
            memory: projected.
            mask: bool, broadcastable to (B, H, T, S), true where a query may look.
            causal: instead of ``mask``: query i sees the keys up to i.
            weights: whether they are wanted.
        """
        ...


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward network, each LayerNorm(x + Dropout(Sublayer(x))) (Vaswani et al. 2017, 3.1).

    Args:
        width: D.
        attention: makes attention of this width, see :class:`Attention`.
        hidden_size: d_ff.
        dropout: P_drop.
    """

    def __init__(self, *, width: int, attention: Callable[[], nn.Module], hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.self_attention: Attention = cast(Attention, attention())
        self.feed_forward = FeedForward(width=width, hidden_size=hidden_size)
        self.self_attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, *, weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """(B, S, D) under the mask (B, 1, 1, S) to (B, S, D), and weights (B, H, S, S) if they are wanted."""
        z, a = self.self_attention(x, self.self_attention.project(x), mask=mask, weights=weights)
        x = self.self_attention_norm(x + self.dropout(z))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x))), a


class DecoderLayer(nn.Module):
    """As :class:`EncoderLayer`, with attention to the encoder's output between the two (section 3.1)."""

    def __init__(self, *, width: int, attention: Callable[[], nn.Module], hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.self_attention: Attention = cast(Attention, attention())
        self.cross_attention: Attention = cast(Attention, attention())
        self.feed_forward = FeedForward(width=width, hidden_size=hidden_size)
        self.self_attention_norm, self.cross_attention_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, y: Tensor, past: KeysValues, memory: KeysValues, *, past_mask: Tensor | None, causal: bool,
        memory_mask: Tensor, weights: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
        """One layer over all target positions, or over the newest alone.

        Args:
            y: (B, T, D).
            past: keys and values of the layer's self-attention at all visible positions, including those of y.
            memory: keys and values of the encoder's output.
            past_mask: which of the past's C positions one of y sees, broadcastable to (B, H, T, C).
            causal: instead of ``past_mask``: position t sees those up to t.
            memory_mask: (B, 1, 1, S), true at source symbols.
            weights: whether they are wanted.

        Returns:
            (B, T, D), and the weights of self-attention (B, H, T, C) and of attention to the source (B, H, T, S).
        """
        z, a = self.self_attention(y, past, mask=past_mask, causal=causal, weights=weights)
        y = self.self_attention_norm(y + self.dropout(z))
        z, b = self.cross_attention(y, memory, mask=memory_mask, weights=weights)
        y = self.cross_attention_norm(y + self.dropout(z))
        return self.feed_forward_norm(y + self.dropout(self.feed_forward(y))), a, b


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from symbol to symbol; all of it belongs to sources, whose beams share it."""

    memory: list[KeysValues]  # of each layer: keys (B, H, S, K) and values (B, H, S, V) of the encoder's output
    mask: Tensor  # (B, 1, 1, S), true at source symbols
    cache: KeyValueCache  # of the target symbols so far
    t: int  # target position, from 0


class TransformerEncoderDecoder(nn.Module):
    """Encoder and decoder with one matrix for both embeddings and the softmax (Vaswani et al. 2017, section 3.4).

    Args:
        vocabulary: V, symbols of source and target together.
        width: D.
        layers: N of the encoder, and of the decoder.
        attention: makes attention, see :class:`Attention`: one of an encoder layer, two of a decoder layer.
        hidden_size: d_ff.
        dropout: P_drop, on every sub-layer's output and on the sums of embeddings and positions.
        positions: from a range of positions to their encodings, see :mod:`shared.layers.positions`.
    """

    def __init__(
        self, *, vocabulary: int, width: int, layers: int, attention: Callable[[], nn.Module], hidden_size: int,
        dropout: float, positions: nn.Module,
    ) -> None:  # fmt: skip
        super().__init__()
        layer: dict[str, Any] = {
            "width": width, "attention": attention, "hidden_size": hidden_size, "dropout": dropout,
        }  # fmt: skip
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)  # times √D, and in the softmax, of unit variance
        self.positions = positions
        self.encoder = nn.ModuleList(EncoderLayer(**layer) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(**layer) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def embed(self, symbols: Tensor, start: int = 0) -> Tensor:
        """√D · E[symbol] + PE (sections 3.4, 3.5) of (B, L) symbols at positions from ``start``: (B, L, D)."""
        e = self.embedding(symbols) * math.sqrt(self.embedding.embedding_dim)
        embedded: Tensor = self.dropout(e + self.positions(start, start + symbols.size(1)))
        return embedded

    def encode(self, source: Tensor, mask: Tensor, *, weights: bool = False) -> tuple[Tensor, list[Tensor]]:
        """(B, S) symbols under the mask (B, 1, 1, S) to (B, S, D), and every layer's weights if they are wanted."""
        x, weights_of_layers = self.embed(source), []
        for layer in self.encoder:
            x, a = layer(x, mask, weights=weights)
            weights_of_layers.append(a)
        return x, weights_of_layers

    def memory(self, x: Tensor) -> list[KeysValues]:
        """The encoder's output (B, S, D) as every decoder layer's keys and values."""
        return [layer.cross_attention.project(x) for layer in self._decoder_layers]

    def decode(
        self, y: Tensor, memory: Sequence[KeysValues], mask: Tensor, *, cache: KeyValueCache | None = None,
        weights: Literal["none", "last layer", "all"] = "none",
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:  # fmt: skip
        """Embedded target symbols (B, T, D) to the decoder's output (B, T, D).

        Args:
            y: all symbols from the first on, or with a cache the newest symbol of each beam (T = k). Each of these
                sees itself and the cached positions of its beam's ancestors.
            memory: of every layer.
            mask: (B, 1, 1, S), true at source symbols.
            cache: opened for this step.
            weights: of which layers they are wanted.

        Returns:
            (B, T, D), and of the layers asked for the weights (B, H, T, ·) on the target and on the source.
        """
        on_target, on_source = [], []
        for n, (layer, source) in enumerate(zip(self._decoder_layers, memory, strict=True)):
            past = layer.self_attention.project(y)
            past_mask = None
            if cache is not None:
                past, past_mask = cache.write(n, *past), cache.mask
            wanted = weights == "all" or (weights == "last layer" and n == len(memory) - 1)
            y, a, b = layer(
                y, past, source, past_mask=past_mask, causal=cache is None, memory_mask=mask, weights=wanted
            )
            if wanted:
                on_target.append(a)
                on_source.append(b)
        return y, on_target, on_source

    @property
    def _decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast(Sequence[DecoderLayer], self.decoder)

    def logits(self, y: Tensor) -> Tensor:
        """(B, T, D) to (B, T, V), by the embedding matrix."""
        return functional.linear(y, self.embedding.weight)

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
        mask = source_mask[:, None, None]  # (B, 1, 1, S)
        memory = self.memory(self.encode(source, mask)[0])
        wanted: Literal["none", "last layer"] = "none" if self.training else "last layer"
        y, _, on_source = self.decode(self.embed(target), memory, mask, weights=wanted)
        return self.logits(y), None if self.training else on_source[0].mean(1)

    def attention_maps(self, source: Tensor, source_mask: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Every head's weights, for arguments as in :meth:`forward`.

        Returns:
            ``encoder`` (N, B, H, S, S), ``decoder`` (N, B, H, T, T) and ``cross`` (N, B, H, T, S).
        """
        mask = source_mask[:, None, None]  # (B, 1, 1, S)
        x, encoder = self.encode(source, mask, weights=True)
        _, decoder, cross = self.decode(self.embed(target), self.memory(x), mask, weights="all")
        return {"encoder": torch.stack(encoder), "decoder": torch.stack(decoder), "cross": torch.stack(cross)}

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """Encode (B, S) source symbols under their mask (B, S)."""
        mask = mask[:, None, None]  # (B, 1, 1, S)
        x, _ = self.encode(source, mask)
        memory = self.memory(x)
        attention = self._decoder_layers[0].self_attention
        cache = KeyValueCache(
            layers=len(self.decoder), batch=len(source), heads=attention.heads, key_size=attention.key_size,
            value_size=attention.value_size, like=memory[0][0],
        )  # fmt: skip
        return DecoderState(memory, mask, cache, 0)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """One symbol further: previous symbols (B, k) to log p (B, k, V), weights (B, k, S) and the next state."""
        state.cache.open(tokens.size(1))
        e = self.embed(tokens.view(-1, 1), state.t).view(*tokens.shape, -1)  # (B, k, D), all at position t
        y, _, on_source = self.decode(e, state.memory, state.mask, cache=state.cache, weights="last layer")
        log_p = torch.log_softmax(self.logits(y), dim=-1)  # (B, k, V)
        return log_p, on_source[0].mean(1), replace(state, t=state.t + 1)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        state.cache.reorder(sources, beams)
        memory = [(select_sources(k, sources), select_sources(v, sources)) for k, v in state.memory]
        return replace(state, memory=memory, mask=select_sources(state.mask, sources))
