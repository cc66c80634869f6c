"""Transformers are RNNs: autoregressive Transformers with linear attention (Katharopoulos et al., ICML 2020).

The paper's attention, and the two that it is compared with, in the Transformer of
``shared/layers/sequence_transformer.py``. The functions :func:`linear_attention` and :func:`recurrent_step` are the
paper's equations; unless ``fused`` is turned off, the twins of ``shared/attention/linear.py`` run instead, with the
same weights and results: they work chunk by chunk and hold no sum for each position. Attention by hashing is in
``shared/attention/lsh.py`` (Reformer). Sections and equations are those of arXiv 2006.16236v3; what the paper leaves
open, such as ReLU and where the norms stand, is as in its authors' library and programs.

Shape letters: B sequences, T symbols, D model width, H heads, K width of a head's keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import State
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention
from shared.attention.multi_head import MultiHeadAttention
from shared.layers.sequence_transformer import Output, SelfAttention, SequenceTransformer


def phi(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1 (equation 7)."""
    return functional.elu(x) + 1


def linear_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """φ(Q)(φ(K)ᵀ V) over its normaliser: equation (5), or where it is causal equations (9) to (12).

    Args:
        q: (B, H, T, K).
        k: (B, H, T, K).
        v: (B, H, T, K).
        mask: (B, T) bool, true at symbols, false at padding; None if there is no padding.
        causal: whether position i sees those up to i only.

    Returns:
        (B, H, T, K); zero where nothing is seen.
    """
    q, k = phi(q), phi(k)
    if mask is not None:
        k = k * mask[:, None, :, None]
    s, z = k.unsqueeze(4) * v.unsqueeze(3), k  # φ(K_j) V_jᵀ (B, H, T, K, K) and φ(K_j) (B, H, T, K)
    if causal:
        s, z = s.cumsum(2), z.cumsum(2)  # S_i and Z_i, equations (10) and (11)
    else:
        s, z = s.sum(2, keepdim=True), z.sum(2, keepdim=True)
    normaliser = (q * z).sum(3, keepdim=True)  # (B, H, T, 1)
    return (q.unsqueeze(3) @ s).squeeze(3) / normaliser.masked_fill(normaliser == 0, 1)


def recurrent_step(q: Tensor, k: Tensor, v: Tensor, s: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One position of the recurrent network of section 3.4.

    Args:
        q: (B, H, K).
        k: (B, H, K).
        v: (B, H, K).
        s: (B, H, K, K) s_{i-1}.
        z: (B, H, K) z_{i-1}.

    Returns:
        (B, H, K), s_i and z_i.
    """
    s = s + phi(k).unsqueeze(3) * v.unsqueeze(2)  # equation (18)
    z = z + phi(k)  # equation (19)
    numerator = (phi(q).unsqueeze(2) @ s).squeeze(2)
    return numerator / (phi(q) * z).sum(2, keepdim=True), s, z  # equation (20), without f_l and the residual


class LinearAttention(SelfAttention):
    """φ(Q)(φ(K)ᵀV) over its normaliser (equations 5 and 9) with φ(x) = elu(x) + 1 (equation 7).

    Attributes:
        fused: whether the twins run in place of :func:`linear_attention` and :func:`recurrent_step`.
    """

    recurrent = True
    fused = True

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = LinearMultiHeadAttention(
            query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, features=EluPlusOne(),
            bias=True,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`."""
        if self.fused:
            out: Tensor = self.heads(x, self.heads.project(x, mask), causal=causal)[0]
            return out
        q, k, v = self._projected(x)
        heads = linear_attention(q, k, v, mask, causal)
        return self._joined(heads)

    def begin(self, like: Tensor, length: int) -> State | None:
        """s_0 = 0 and z_0 = 0 (equations 16 and 17)."""
        return None

    def step(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Equations (18) to (20)."""
        if self.fused:
            return self.heads.step(x, state)
        q, k, v = (tensor.squeeze(2) for tensor in self._projected(x.unsqueeze(1)))  # (B, H, K) each
        sums = k.new_zeros(*k.shape, v.size(2) + 1) if state is None else state.sums
        heads, s, z = recurrent_step(q, k, v, sums[..., :-1], sums[..., -1])
        return self._joined(heads.unsqueeze(2)).squeeze(1), State(torch.cat((s, z.unsqueeze(3)), dim=3))

    def _projected(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values x W_Q, x W_K and x W_V of all heads: (B, T, D) to (B, H, T, K) each."""
        projections = self.heads.w_q(x), *self.heads.w_kv(x).split(self.heads.sizes, dim=2)
        return [tensor.unflatten(2, (self.heads.heads, -1)).transpose(1, 2) for tensor in projections]

    def _joined(self, heads: Tensor) -> Tensor:
        """All heads' results (B, H, T, K) to (B, T, D)."""
        joined: Tensor = self.heads.w_o(heads.transpose(1, 2).flatten(2))
        return joined


class KeysValuesSoFar(NamedTuple):
    """The key-value cache of softmax attention: it grows with the sequence, and every position reads all of it.

    Attributes:
        keys: (B, H, length, K), of which the first ``used`` are there.
        values: likewise.
        used: positions so far.
    """

    keys: Tensor
    values: Tensor
    used: int


class SoftmaxAttention(SelfAttention):
    """Equation (2); step by step it is the paper's "stateful softmax" (supplementary material C.1)."""

    recurrent = True

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = MultiHeadAttention(
            query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, bias=True
        )

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`. Padding is at the end, so a causal query of a real symbol never sees it."""
        seen = None if mask is None or causal else mask[:, None, None]
        out: Tensor = self.heads(x, self.heads.project(x), mask=seen, causal=causal)[0]
        return out

    def begin(self, like: Tensor, length: int) -> KeysValuesSoFar:
        """Room for all keys and values."""
        keys, values = (
            like.new_empty(len(like), self.heads.heads, length, size)
            for size in (self.heads.key_size, self.heads.value_size)
        )
        return KeysValuesSoFar(keys, values, 0)

    def step(self, x: Tensor, state: KeysValuesSoFar) -> tuple[Tensor, KeysValuesSoFar]:
        """The new key and value are written where they belong, and all so far are read."""
        keys, values, used = state.keys, state.values, state.used + 1
        if used > keys.size(2):
            raise ValueError(f"there is room for {keys.size(2)} positions, and no more; begin with a greater length")
        k, v = self.heads.project(x.unsqueeze(1))
        keys[:, :, used - 1 : used], values[:, :, used - 1 : used] = k, v
        out, _ = self.heads(x.unsqueeze(1), (keys[:, :, :used], values[:, :, :used]))
        return out.squeeze(1), KeysValuesSoFar(keys, values, used)


class HashedAttention(SelfAttention):
    """Reformer's attention, of the paper's comparisons "lsh-X" with X rounds; it has no recurrent form."""

    def __init__(self, *, width: int, heads: int, rounds: int, buckets: int, chunk: int) -> None:
        super().__init__()
        self.heads = LSHSelfAttention(
            width=width, heads=heads, key_size=width // heads, value_size=width // heads, buckets=buckets, chunk=chunk,
            rounds=rounds, bias=True,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`."""
        out: Tensor = self.heads(x, mask=mask, causal=causal)[0]
        return out

    def redraw(self, generator: torch.Generator) -> None:
        """Draw the hashes' rotations."""
        self.heads.redraw(generator)


class LinearTransformer(SequenceTransformer):
    """T_l(x) = f_l(A_l(x) + x), equation (1), in every layer, normalised after each of the two sums.

    Args:
        symbols: of the vocabulary.
        width: D.
        hidden_size: of f_l.
        attentions: makes A_l of each layer.
        layers: how many.
        output: from states to the probabilities of symbols: a softmax, or for pixels a mixture of logistics.
        causal: whether position i sees those up to i only; then, step by step, it is the RNN of section 3.4.
        length: symbols of the longest sequence, for which the recurrent form of softmax attention has room.
        concatenated: whether embedding and sinusoids have half of the width each, as in the authors' programs, or
            all of it, and are added.
        columns: pixels of a row, where sequences are pictures and positions are rows and columns.
        dropout: on attention and feed-forward networks.
    """

    def __init__(
        self, *, symbols: int, width: int, hidden_size: int, attentions: Callable[[], SelfAttention], layers: int,
        output: Output, causal: bool, length: int, concatenated: bool = False, columns: int | None = None,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(
            symbols=symbols, width=width, hidden_size=hidden_size, attentions=attentions, layers=layers,
            output=lambda: output, causal=causal, norm="post", length=length, concatenated=concatenated,
            columns=columns, dropout=dropout,
        )  # fmt: skip
