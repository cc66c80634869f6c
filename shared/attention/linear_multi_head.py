"""Multi-head linear attention (Katharopoulos et al. 2020): each head's softmax replaced by features of a map.

Shape letters: B batch, N queries, S keys, D model width, H heads, K query and key width, C features, V value width.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from shared.attention.feature_maps import FeatureMap
from shared.attention.linear import attend_with_features, linear_attention_weights
from shared.attention.multi_head import KeysValues, MultiHeadAttention


class LinearMultiHeadAttention(MultiHeadAttention):
    """Multi-head attention with weights φ(q)ᵀ φ(k), and one map for all heads.

    Args:
        features: φ. Its scale, if it has one, is its own: there is no division by √K here.
        sizes: those of :class:`MultiHeadAttention`.
    """

    def __init__(self, *, features: FeatureMap, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.features = features

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False,
        positions: object = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """See :class:`MultiHeadAttention`, but for the mask.

        Args:
            x: (B, N, D).
            memory: what :meth:`project` made of it.
            mask: (B, S) bool, true at symbols, false at padding. No other masks are possible here.
            causal: whether query i sees the keys up to i only; then N = S.
            weights: whether they are wanted, which takes the time and memory of all pairs.
            positions: do not matter.

        Returns:
            (B, N, D), and the weights (B, H, N, S) of every head or None.
        """
        (k, v), q = memory, self.queries(x)
        if not weights:
            return self.joined(attend_with_features(self.features, q, k, v, mask, causal)), None
        phi_k, log_scale = self.features.keys(k, None if mask is None else mask.unsqueeze(1))
        a = linear_attention_weights(self.features.queries(q), phi_k, log_scale=log_scale, causal=causal)
        return self.joined(a.to(v.dtype) @ v), a
