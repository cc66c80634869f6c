"""Self-attention with relative positions (Shaw, Uszkoreit & Vaswani 2018), in the Transformer of ``shared``.

Shape letters: B batch, T queries, S keys, D model width, H heads, K width of a head's keys and values, C = 2k + 1
clipped distances.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from shared.attention.multi_head import KeysValues, MultiHeadAttention
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as
from shared.layers.positions import NoPositions, SinusoidalPositions
from shared.layers.transformer import Positions, Transformer


def clipped(positions: Positions, k: int) -> Tensor:
    """clip(j − i, −k, k) + k, the row of w that a pair has (section 3.2): (B or 1, T, S), in 0 … 2k."""
    distances = positions.keys.unsqueeze(-2) - positions.queries.unsqueeze(-1)
    return (distances.clamp(-k, k) + k).view(-1, *distances.shape[-2:])


def attend_by_distance(
    q: Tensor, k: Tensor, v: Tensor, w_k: Tensor | None, w_v: Tensor | None, pairs: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The twin of :func:`attend`: a product for each of the C distances and none for a pair.

    q_i a^K_{ij} is one of the C numbers q_i wᵀ, and Σ_j α_ij a^V_{ij} is Σ_c (Σ_{j at distance c} α_ij) w_c. So no
    vector (T, S, K) is made, where section 3.3 splits the sum in two and makes one for all heads and sequences.
    """
    pairs = pairs.unsqueeze(1).expand(len(q), q.size(1), -1, -1)  # (B, H, T, S)
    e = q @ k.mT
    if w_k is not None:
        e = e + (q @ w_k.mT).gather(-1, pairs)
    alpha = masked_softmax(e / math.sqrt(q.size(-1)), mask)
    z = alpha @ v
    if w_v is not None:
        z = z + alpha.new_zeros(*alpha.shape[:3], w_v.size(-2)).scatter_add(-1, pairs, alpha) @ w_v
    return z, alpha


@runs_as(attend_by_distance)
def attend(
    q: Tensor, k: Tensor, v: Tensor, w_k: Tensor | None, w_v: Tensor | None, pairs: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Equations 2 to 4: e_ij = q_i (k_j + a^K_ij)ᵀ / √K, α = softmax(e), z_i = Σ_j α_ij (v_j + a^V_ij).

    Args:
        q: x_i W^Q, (B, H, T, K).
        k: x_j W^K, (B, H, S, K).
        v: x_j W^V, (B, H, S, K).
        w_k: w^K of the distances −k … k, (H, C, K), from which a^K_ij is taken; None: no such term.
        w_v: w^V, likewise.
        pairs: the row of w for each pair, (B or 1, T, S), see :func:`clipped`.
        mask: bool, broadcastable to (B, H, T, S), true where a query may look.

    Returns:
        (B, H, T, K) and the weights (B, H, T, S).
    """
    keys = k.unsqueeze(2)  # (B, H, 1, S, K)
    values = v.unsqueeze(2)
    if w_k is not None:
        keys = keys + w_k[:, pairs].transpose(0, 1)  # a^K, (B or 1, H, T, S, K)
    if w_v is not None:
        values = values + w_v[:, pairs].transpose(0, 1)
    e = torch.einsum("bhik,bhijk->bhij", q, keys.expand(-1, -1, q.size(2), -1, -1)) / math.sqrt(q.size(-1))
    alpha = masked_softmax(e, mask)
    return torch.einsum("bhij,bhijk->bhik", alpha, values.expand(-1, -1, q.size(2), -1, -1)), alpha


class RelativeAttention(MultiHeadAttention):
    """Self-attention whose pairs of positions have a vector for their distance, in each layer and head its own.

    Args:
        width: D.
        heads: H.
        clip: k, the distance from which on all have one vector.
        on_keys: whether a^K is there.
        on_values: whether a^V is there.
    """

    def __init__(self, *, width: int, heads: int, clip: int, on_keys: bool, on_values: bool) -> None:
        super().__init__(query_size=width, heads=heads, key_size=width // heads, value_size=width // heads)
        self.clip = clip
        shape = heads, 2 * clip + 1, width // heads
        self.w_k_distances, self.w_v_distances = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape))) if wanted else None
            for wanted in (on_keys, on_values)
        )

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False,
        positions: object = None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """See :class:`shared.layers.transformer.Attention`."""
        assert isinstance(positions, Positions), "distances need the positions of queries and keys"
        q, (k, v) = self.queries(x), memory
        seen = torch.ones(q.size(2), k.size(2), dtype=torch.bool, device=x.device)
        pairs = clipped(positions, self.clip)
        if mask is None:
            mask = seen.tril() if causal else seen
        z, alpha = attend(q, k, v, self.w_k_distances, self.w_v_distances, pairs, mask)
        return self.joined(z), alpha if weights else None


class RelativeTransformer(Transformer):
    """The Transformer with relative positions in place of sinusoids or, for comparison, with these.

    Attention to the source knows no positions, as in the paper: a distance has no meaning between two languages.

    Args:
        vocabulary: symbols of source and target together.
        layers, heads, width, hidden: N, H, D and the width of the feed-forward networks.
        clip: k; None: attention knows no distances.
        on_keys: whether a^K is there.
        on_values: whether a^V is there.
        absolute: whether embeddings have sinusoids added.
        dropout: on sub-layers and embeddings.
    """

    def __init__(
        self, *, vocabulary: int, layers: int, heads: int, width: int, hidden: int, clip: int | None, on_keys: bool,
        on_values: bool, absolute: bool, dropout: float,
    ) -> None:  # fmt: skip
        def plain() -> MultiHeadAttention:
            size = width // heads
            return MultiHeadAttention(query_size=width, heads=heads, key_size=size, value_size=size)

        def relative() -> MultiHeadAttention:
            if clip is None:
                return plain()
            return RelativeAttention(width=width, heads=heads, clip=clip, on_keys=on_keys, on_values=on_values)

        super().__init__(
            vocabulary=vocabulary, width=width, layers=layers, hidden_size=hidden, dropout=dropout,
            encoder_attention=relative, source_attention=plain,
            positions=SinusoidalPositions(width=width) if absolute else NoPositions(),
        )  # fmt: skip
