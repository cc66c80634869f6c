"""Attention is all you need (Vaswani et al., NeurIPS 2017).

The whole model as its equations, top to bottom: scaled dot-product attention, heads, layers, encoder and decoder.
Unless ``fused`` is turned off, the twin of ``shared/layers/encoder_decoder.py`` runs instead, with the same weights and
results: it has the fused kernel of attention, one matrix product for all heads, and a cache for decoding. Sections,
equations and names are those of arXiv 1706.03762v5.

Shape letters: B batch, S source length (end symbol included), T target length, D model width (d_model), N layers,
H heads, K key width (d_k), V value width (d_v) or, of logits, vocabulary.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from shared.attention.multi_head import MultiHeadAttention
from shared.attention.softmax import masked_softmax
from shared.layers.encoder_decoder import DecoderLayer, EncoderLayer, TransformerEncoderDecoder
from shared.layers.feed_forward import FeedForward


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √d_k) V, equation (1).

    Args:
        q: (B, T, K).
        k: (B, S, K).
        v: (B, S, V).
        mask: bool, broadcastable to (B, T, S), true where a query may look.
        scale: 1/√d_k.

    Returns:
        (B, T, V), and the weights (B, T, S).
    """
    a = masked_softmax(q @ k.mT * scale, mask)
    return a @ v, a


def multi_head(heads: MultiHeadAttention, x: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Concat(head_1 … head_H) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V) (section 3.2.2).

    Queries are of x (B, T, D), keys and values of ``memory`` (B, S, D); the result is (B, T, D) and weights
    (B, H, T, S).
    """
    h, d_k, d_v = heads.heads, heads.key_size, heads.value_size
    w_q = heads.w_q.weight.split(d_k)  # the matrices of all heads stand one above the other
    w_k, w_v = heads.w_kv.weight.split((h * d_k, h * d_v))
    scale = 1 / math.sqrt(d_k) if heads.scale is None else heads.scale
    each = [
        attention(x @ q.t(), memory @ k.t(), memory @ v.t(), mask, scale)
        for q, k, v in zip(w_q, w_k.split(d_k), w_v.split(d_v), strict=True)
    ]
    return torch.cat([head for head, _ in each], dim=-1) @ heads.w_o.weight.t(), torch.stack([a for _, a in each], 1)


def feed_forward(network: FeedForward, x: Tensor) -> Tensor:
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2): (B, T, D) to (B, T, D)."""
    (w_1, b_1), (w_2, b_2) = ((w.weight.t(), w.bias) for w in (network.w_1, network.w_2))
    return torch.clamp(x @ w_1 + b_1, min=0) @ w_2 + b_2


def encode(layer: EncoderLayer, x: Tensor, mask: Tensor) -> Tensor:
    """Each sub-layer is LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1, 5.4): (B, S, D) to (B, S, D)."""
    heads = cast(MultiHeadAttention, layer.self_attention)
    x = layer.self_attention_norm(x + layer.dropout(multi_head(heads, x, x, mask)[0]))
    out: Tensor = layer.feed_forward_norm(x + layer.dropout(feed_forward(layer.feed_forward, x)))
    return out


def decode(layer: DecoderLayer, y: Tensor, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`encode`, with attention to the encoder's output x (B, S, D) between the two (section 3.1).

    A target position sees itself and those before it (section 3.2.3): (B, T, D) to (B, T, D), and the weights
    (B, H, T, S) on the source.
    """
    on_target, on_source = (cast(MultiHeadAttention, a) for a in (layer.self_attention, layer.cross_attention))
    past = torch.ones(y.size(1), y.size(1), dtype=torch.bool, device=y.device).tril()
    y = layer.self_attention_norm(y + layer.dropout(multi_head(on_target, y, y, past)[0]))
    z, a = multi_head(on_source, y, x, mask)
    y = layer.cross_attention_norm(y + layer.dropout(z))
    return layer.feed_forward_norm(y + layer.dropout(feed_forward(layer.feed_forward, y))), a


class Transformer(TransformerEncoderDecoder):
    """The Transformer with one matrix for both embeddings and the softmax (section 3.4).

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

    Attributes:
        fused: whether teacher forcing runs the twin in place of the equations above. Decoding always does.
    """

    fused = True

    def __init__(
        self, *, vocabulary: int, width: int, layers: int, heads: int, key_size: int, value_size: int,
        hidden_size: int, dropout: float, positions: nn.Module, scaled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            vocabulary=vocabulary, width=width, layers=layers, hidden_size=hidden_size, dropout=dropout,
            positions=positions,
            attention=lambda: MultiHeadAttention(
                query_size=width, heads=heads, key_size=key_size, value_size=value_size, scaled=scaled
            ),
        )  # fmt: skip

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing; arguments and results are those of :meth:`TransformerEncoderDecoder.forward`."""
        if self.fused:
            return super().forward(source, source_mask, target)
        mask = source_mask.unsqueeze(1)  # (B, 1, S)
        x, y = self.embed(source), self.embed(target)  # √D · E[symbol] + PE
        for layer in self.encoder:
            x = encode(cast(EncoderLayer, layer), x, mask)
        for layer in self.decoder:
            y, a = decode(cast(DecoderLayer, layer), y, x, mask)
        return y @ self.embedding.weight.t(), None if self.training else a.mean(1)
