"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

Shape letters: B batch, Q queries, S keys, D model width, H heads, K query and key width, V value width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shared.attention.scaled_dot_product import attend, attention_weights

KeysValues = tuple[Tensor, Tensor]
"""Keys (B, H, S, K) and values (B, H, S, V)."""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 … head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    The heads' matrices stand side by side in one, and those of keys and values too, which
    always read the same. :meth:`project` is apart from :meth:`forward`, so that a decoder projects its source once.

    Args:
        query_size: D of the queries and of the result.
        memory_size: D of what is attended to; that of the queries unless given.
        heads: H.
        key_size: K; D / H in the paper.
        value_size: V.
        scaled: whether scores are divided by √K.
        bias: whether projections have one; the paper's have none.
    """

    def __init__(
        self, *, query_size: int, heads: int, key_size: int, value_size: int, memory_size: int | None = None,
        scaled: bool = True, bias: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        memory_size = query_size if memory_size is None else memory_size
        self.heads, self.key_size, self.value_size = heads, key_size, value_size
        self.scale = None if scaled else 1.0
        self.w_q = nn.Linear(query_size, heads * key_size, bias=bias)
        self.w_kv = nn.Linear(memory_size, heads * (key_size + value_size), bias=bias)
        self.w_o = nn.Linear(heads * value_size, query_size, bias=bias)
        w_k, w_v = self.w_kv.weight.split((heads * key_size, heads * value_size))
        for w in (self.w_q.weight, w_k, w_v, self.w_o.weight):
            nn.init.xavier_uniform_(w)
        for linear in (self.w_q, self.w_kv, self.w_o):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def queries(self, x: Tensor) -> Tensor:
        """(B, Q, D) to queries (B, H, Q, K)."""
        q: Tensor = self.w_q(x).unflatten(-1, (self.heads, self.key_size)).transpose(1, 2)
        return q

    def project(self, memory: Tensor) -> KeysValues:
        """(B, S, D) to keys (B, H, S, K) and values (B, H, S, V)."""
        k, v = self.w_kv(memory).split((self.heads * self.key_size, self.heads * self.value_size), dim=-1)
        return (
            k.unflatten(-1, (self.heads, self.key_size)).transpose(1, 2),
            v.unflatten(-1, (self.heads, self.value_size)).transpose(1, 2),
        )

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False,
        positions: object = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend from (B, Q, D) to projected memory.

        Args:
            x: (B, Q, D).
            memory: what :meth:`project` made of it.
            mask: see :func:`shared.attention.scaled_dot_product.attend`.
            causal: likewise.
            weights: whether they are wanted, which takes the slower path.
            positions: of queries and keys, which matter to other attentions (:mod:`shared.layers.transformer`).

        Returns:
            (B, Q, D), and the weights (B, H, Q, S) of every head or None.
        """
        (k, v), q = memory, self.queries(x)
        a = attention_weights(q, k, mask=mask, causal=causal, scale=self.scale) if weights else None
        return self.joined(attend(q, k, v, mask=mask, causal=causal, scale=self.scale) if a is None else a @ v), a

    def joined(self, heads: Tensor) -> Tensor:
        """The results of all heads (B, H, Q, V) to (B, Q, D)."""
        joined: Tensor = self.w_o(heads.transpose(1, 2).flatten(2))
        return joined


class IdentityAttention(MultiHeadAttention):
    """What a layer would cost if attention itself were free: every position gets its own value only.

    It is "X (OPT)" of Choromanski et al. (2021, section 4.1, figure 3), an upper bound of the possible speed. All four
    projections are computed, although the queries and keys are not used. Autograd computes no gradient of the queries'
    matrix. Keys and values share one matrix, and autograd computes its whole gradient, which is zero for the keys. The
    measured time therefore includes the backward pass of the keys' projection, but not of the queries'.
    """

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False,
        positions: object = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """See :class:`MultiHeadAttention`; there are as many queries as values, and no mask changes anything."""
        q, (_, v) = self.queries(x), memory
        a = torch.eye(v.size(2), dtype=q.dtype, device=q.device).expand(*q.shape[:3], -1) if weights else None
        return self.joined(v), a
