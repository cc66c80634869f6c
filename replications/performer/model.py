"""Rethinking attention with Performers (Choromanski et al., ICLR 2021).

The paper's attention, in the Transformer of ``shared/layers/sequence_transformer.py``. Random features stand in
``shared/attention/favor.py`` (sections 2.3 and 2.4), the sums that they make linear in ``shared/attention/linear.py``
(section 2.2). Sections and equations are those of arXiv 2009.14794; what the
paper leaves open, such as where the norms stand, is as in the language model that its authors' code is a change of.

Shape letters: B sequences, T symbols (L in the paper), D model width, H heads, K width of a head's keys and values
(d in the paper), C features (m or 2m).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from shared.attention.feature_maps import FeatureMap
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.attention.scaled_dot_product import attend
from shared.layers.categorical import CategoricalOutput
from shared.layers.sequence_transformer import SelfAttention, SequenceTransformer


class FavorAttention(SelfAttention):
    """Fast attention via random features: D̂⁻¹ (Q′ ((K′)ᵀ V)), equation (4), or without features equation (1) itself.

    Its weights are those of exact attention, so that either can take over what the other has learned (section 4.2).

    Args:
        width: D.
        heads: H.
        features: φ of queries and keys, for all heads the same; None for exact softmax attention.
    """

    exact: Tensor

    def __init__(self, *, width: int, heads: int, features: FeatureMap | None) -> None:
        super().__init__()
        self.heads, self.features = heads, features
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width, bias=False) for _ in range(4))
        for linear in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(linear.weight)
        # Whether attention is exact at present. A checkpoint holds it, since it depends on the progress of training.
        self.register_buffer("exact", torch.tensor(features is None))

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D); ``mask`` (B, T) is true at symbols, false at padding."""
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        if self.features is None or self.exact:
            # Padding is at the end, so a causal query of a real symbol never sees it.
            seen = None if mask is None or causal else mask[:, None, None]
            heads, _ = attend(q, k, v, mask=seen, causal=causal)  # (B, H, T, K)
        else:
            q = self.features.queries(q)  # Q′, (B, H, T, C)
            k, scale = self.features.keys(k, None if mask is None else mask.unsqueeze(1))  # K′, zero at padding
            if causal:
                heads, _ = chunkwise_linear_attention(q, k, v, log_scale=scale)  # appendix B.1
            else:
                heads = linear_attention(q, k, v, log_scale=scale)
        out: Tensor = self.w_o(heads.transpose(1, 2).flatten(2))
        return out


class Performer(SequenceTransformer):
    """Symbols to the states that predict each the next one (UNI in the paper), or hidden ones from all others (BID).

    Args:
        symbols: of the vocabulary.
        width: D.
        heads: H.
        hidden_size: of the feed-forward networks.
        layers: how many.
        features: makes φ of each layer; returns None where attention is to be exact, which makes a Transformer.
        causal: whether position i sees those up to i only.
        dropout: on embeddings, attention and feed-forward networks.
        redraw_every: updates of training from one drawing of random features to the next; None: drawn once.
        swap_at: the update from which on there are features; before it the model is an exact Transformer.
    """

    def __init__(
        self, *, symbols: int, width: int, heads: int, hidden_size: int, layers: int,
        features: Callable[[], FeatureMap | None], causal: bool, dropout: float = 0.0,
        redraw_every: int | None = None, swap_at: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            symbols=symbols, width=width, hidden_size=hidden_size, layers=layers,
            attentions=lambda: FavorAttention(width=width, heads=heads, features=None),
            output=lambda: CategoricalOutput(width=width, symbols=symbols), causal=causal, norm="pre",
            dropout=dropout, embedding_dropout=dropout,
        )  # fmt: skip
        self.redraw_every, self.swap_at = redraw_every, swap_at
        # Drawn last, so that with one seed all kinds of attention begin with the same weights.
        for attention in self.attentions:
            attention.features = features()
            attention.exact.fill_(attention.features is None or swap_at is not None)

    def at_update(self, number: int) -> None:
        """Before every update of training: attention is replaced when it is time, and features are drawn anew.

        Resumed training draws the same features again: the model's origin and ``number`` seed every draw.
        """
        if self.swap_at is not None and number >= self.swap_at:
            for attention in self.attentions:
                attention.exact.fill_(attention.features is None)
        if self.redraw_every is not None and number % self.redraw_every == 0:
            generator = self.generator_of(number)
            for attention in self.attentions:
                if attention.features is not None:
                    attention.features.redraw(generator)
