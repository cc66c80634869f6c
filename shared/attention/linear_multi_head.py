"""Multi-head linear attention (Katharopoulos et al. 2020): each head's softmax replaced by features of a map.

Shape letters: B batch, N queries, S keys, T positions where these are the same, D model width, H heads, K query and key
width, C features, V value width.
"""

from __future__ import annotations

from torch import Tensor, nn

from shared.attention.feature_maps import FeatureMap, Features
from shared.attention.linear import (
    State,
    chunkwise_linear_attention,
    linear_attention,
    linear_attention_step,
)
from shared.attention.linear_naive import linear_attention_weights

FeaturesValues = tuple[Features, Tensor]
"""Features of keys (B, H, S, C) and values (B, H, S, V)."""


class LinearMultiHeadAttention(nn.Module):
    """As :class:`shared.attention.multi_head.MultiHeadAttention`, with weights φ(q)ᵀ φ(k) and one map for all heads.

    Args:
        query_size: D of the queries and of the result.
        heads: H.
        key_size: K.
        value_size: V.
        features: φ. Its scale, if it has one, is its own: there is no division by √K here.
        memory_size: D of what is attended to; that of the queries unless given.
        bias: whether projections have one, as those of the paper's code have.
        chunk: L of the causal form.
    """

    def __init__(
        self, *, query_size: int, heads: int, key_size: int, value_size: int, features: FeatureMap,
        memory_size: int | None = None, bias: bool = False, chunk: int = 64,
    ) -> None:  # fmt: skip
        super().__init__()
        memory_size = query_size if memory_size is None else memory_size
        self.heads, self.chunk, self.features = heads, chunk, features
        self.sizes = (heads * key_size, heads * value_size)
        self.w_q = nn.Linear(query_size, heads * key_size, bias=bias)
        self.w_kv = nn.Linear(memory_size, sum(self.sizes), bias=bias)
        self.w_o = nn.Linear(heads * value_size, query_size, bias=bias)
        for w in (self.w_q.weight, *self.w_kv.weight.split(self.sizes), self.w_o.weight):
            nn.init.xavier_uniform_(w)
        for linear in (self.w_q, self.w_kv, self.w_o):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def queries(self, x: Tensor) -> Tensor:
        """(B, N, D) to φ of queries (B, H, N, C)."""
        return self.features.queries(self._by_head(self.w_q(x)))

    def project(self, memory: Tensor, mask: Tensor | None = None) -> FeaturesValues:
        """(B, S, D) to φ of keys (B, H, S, C), zero at padding, and values (B, H, S, V).

        Args:
            memory: what is attended to.
            mask: (B, S) bool, true at symbols, false at padding. No other masks are possible here.
        """
        k, v = (self._by_head(x) for x in self.w_kv(memory).split(self.sizes, dim=-1))
        return self.features.keys(k, None if mask is None else mask.unsqueeze(1)), v

    def forward(
        self, x: Tensor, memory: FeaturesValues, *, causal: bool = False, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from (B, N, D) to projected memory.

        Args:
            x: (B, N, D).
            memory: what :meth:`project` made of it.
            causal: whether query i sees the keys up to i only; then N = S.
            weights: whether they are wanted, which takes the time and memory of all pairs.

        Returns:
            (B, N, D), and the weights (B, H, N, S) of every head or None.
        """
        q, ((k, log_scale), v) = self.queries(x), memory
        if weights:
            a = linear_attention_weights(q, k, log_scale=log_scale, causal=causal)
            return self._joined(a.to(v.dtype) @ v), a
        if causal:
            heads, _ = chunkwise_linear_attention(q, k, v, log_scale=log_scale, chunk=self.chunk)
        else:
            heads = linear_attention(q, k, v, log_scale=log_scale)
        return self._joined(heads), None

    def segment(self, x: Tensor, state: State | None = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Causal attention among the positions of a segment and to all before it, of which the state is left.

        Args:
            x: (B, T, D).
            state: after the segment before, None at the first.
            mask: (B, T) bool, true at symbols, false at padding.

        Returns:
            (B, T, D), and the state after the last position.
        """
        (k, log_scale), v = self.project(x, mask)
        heads, state = chunkwise_linear_attention(
            self.queries(x), k, v, log_scale=log_scale, state=state, chunk=self.chunk
        )
        return self._joined(heads), state

    def step(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """A segment of one position, (B, D) to (B, D), in time and memory that do not grow."""
        (k, log_scale), v = self.project(x.unsqueeze(1))
        scale = None if log_scale is None else log_scale.squeeze(2)
        q = self.queries(x.unsqueeze(1))
        heads, state = linear_attention_step(q.squeeze(2), k.squeeze(2), v.squeeze(2), state, log_scale=scale)
        return self._joined(heads.unsqueeze(2)).squeeze(1), state

    def _by_head(self, x: Tensor) -> Tensor:
        by_head: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return by_head

    def _joined(self, heads: Tensor) -> Tensor:
        joined: Tensor = self.w_o(heads.transpose(1, 2).flatten(2))
        return joined
