"""Rethinking attention with Performers (Choromanski et al., ICLR 2021).

The paper's attention FAVOR+ in the Transformer of ``shared/layers/transformer.py``: its features are :func:`phi`, and
what is linear in the length is :func:`favor`. Exponentials overflow and underflow, so a twin
(:mod:`shared.attention.twins`) runs in place of the equations, which divides features by their largest and carries
logarithms of scales (:mod:`shared.attention.favor`). Projections are drawn there, too (section 2.4). Sections and
equations are those of arXiv 2009.14794; what the paper leaves open, such as where the norms stand, is in
``program`` of paper.yaml.

Shape letters: B sequences, T symbols (L in the paper), D model width, H heads, K width of a head's keys and values
(d in the paper), P projections (m in the paper), C features (P or 2P).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from shared.attention.favor import SoftmaxFeatures
from shared.attention.feature_maps import FeatureMap, ReLU
from shared.attention.linear import attend_with_features
from shared.attention.scaled_dot_product import attend
from shared.attention.twins import runs_as
from shared.layers.outputs import CategoricalOutput
from shared.layers.transformer import SelfAttention, SequenceTransformer


def phi(features: FeatureMap, x: Tensor) -> Tensor:
    """Random features with E φ(x)ᵀφ(y) = exp(xᵀy / √K) (lemma 1, section 2.3), or those of Performer-ReLU.

    With ω_1 … ω_P the rows of W: positive, h(x) exp(ω_iᵀ x); hyperbolic, exp(±ω_iᵀ x); trigonometric, sin ω_iᵀ x and
    cos ω_iᵀ x with h(x) = exp(+‖x‖²/2); (…, K) to (…, C).
    """
    if not isinstance(features, SoftmaxFeatures):
        return torch.relu(x) + (features.epsilon if isinstance(features, ReLU) else 0)  # generalized attention
    x = x / x.size(-1) ** 0.25  # so that xᵀy is divided by √K
    projected, half = x @ features.w.t(), (x**2).sum(-1, keepdim=True) / 2  # (…, P), ‖x‖²/2 (…, 1)
    match features.estimator:
        case "positive":
            return torch.exp(projected - half) / math.sqrt(len(features.w))
        case "hyperbolic":
            both = torch.cat((projected, -projected), dim=-1)
            return torch.exp(both - half) / math.sqrt(2 * len(features.w))
    both = torch.cat((projected.sin(), projected.cos()), dim=-1)
    return torch.exp(half) * both / math.sqrt(len(features.w))


@runs_as(attend_with_features)
def favor(features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """D̂⁻¹ (Q′ ((K′)ᵀ V)) with D̂ = diag(Q′ ((K′)ᵀ 1)), equation (4); causal by prefix sums (appendix B.1).

    Args:
        features: φ.
        q: (B, H, T, K).
        k: (B, H, T, K).
        v: (B, H, T, K).
        mask: (B, T) bool, true at symbols, false at padding; None if there is no padding.
        causal: whether position i sees those up to i only.

    Returns:
        (B, H, T, K).
    """
    q, k = phi(features, q), phi(features, k)  # Q′ and K′, (B, H, T, C)
    if mask is not None:
        k = k * mask[:, None, :, None]
    g, z = k.unsqueeze(4) * v.unsqueeze(3), k  # K′_j V_jᵀ (B, H, T, C, K) and K′_j
    if causal:
        g, z = g.cumsum(2), z.cumsum(2)  # G^PS_i, the sums over j ≤ i
    else:
        g, z = g.sum(2, keepdim=True), z.sum(2, keepdim=True)
    normaliser = (q * z).sum(3, keepdim=True)  # D̂_i, (B, H, T, 1)
    return (q.unsqueeze(3) @ g).squeeze(3) / normaliser.masked_fill(normaliser == 0, 1)


class FavorAttention(SelfAttention):
    """Fast attention via random features: D̂⁻¹ (Q′ ((K′)ᵀ V)), equation (4), or without features equation (1) itself.

    Its weights are those of exact attention, so that either can take over what the other has learned (section 4.3).

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
            heads = attend(q, k, v, mask=seen, causal=causal)  # (B, H, T, K)
        else:
            heads = favor(self.features, q, k, v, mask, causal)
        return self.w_o(heads.transpose(1, 2).flatten(2))


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
