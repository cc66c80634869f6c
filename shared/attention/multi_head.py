"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

Shape letters: B batch, Q queries, S keys, D model width, H heads, K query and key width, V value width.
"""

from __future__ import annotations

from torch import Tensor, nn

from shared.attention.scaled_dot_product import attend, attend_with_weights

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
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend from (B, Q, D) to projected memory.

        Args:
            x: (B, Q, D).
            memory: what :meth:`project` made of it.
            mask: see :func:`shared.attention.scaled_dot_product.attend`.
            causal: likewise.
            weights: whether they are wanted, which takes the slower path.

        Returns:
            (B, Q, D), and the weights (B, H, Q, S) of every head or None.
        """
        path = attend_with_weights if weights else attend
        heads, a = path(self.queries(x), *memory, mask=mask, causal=causal, scale=self.scale)
        return self.w_o(heads.transpose(1, 2).flatten(2)), a
