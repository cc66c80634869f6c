"""Transformers are RNNs: autoregressive Transformers with linear attention (Katharopoulos et al., ICML 2020).

The paper's attention, and the two that it is compared with, in the Transformer of
``shared/layers/transformer.py``. The functions :func:`linear_attention` and :func:`recurrent_step` are the paper's
equations; their twins (:mod:`shared.attention.twins`) work chunk by chunk and hold no sum for each position. Attention
by hashing is in :mod:`shared.attention.lsh` (Reformer). Sections and equations are those of arXiv 2006.16236v3; what
the paper leaves open, such as ReLU and where the norms stand, is in ``program`` of paper.yaml.

Shape letters: B sequences, T symbols, D model width, H heads, K width of a head's keys and values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import State, attend_with_features, linear_attention_step
from shared.attention.lsh import LSHSelfAttention
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.twins import runs_as
from shared.layers.positions import SinusoidalPositions
from shared.layers.transformer import SelfAttention, SequenceTransformer


def phi(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1 (equation 7)."""
    return functional.elu(x) + 1


ELU = EluPlusOne()


def chunk_by_chunk(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """The twin of :func:`linear_attention`."""
    return attend_with_features(ELU, q, k, v, mask, causal)


@runs_as(chunk_by_chunk)
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


def fused_step(q: Tensor, k: Tensor, v: Tensor, state: State | None) -> tuple[Tensor, State]:
    """The twin of :func:`recurrent_step`."""
    return linear_attention_step(ELU.queries(q), ELU.keys(k).values, v, state)


@runs_as(fused_step)
def recurrent_step(q: Tensor, k: Tensor, v: Tensor, state: State | None) -> tuple[Tensor, State]:
    """One position of the recurrent network of section 3.4.

    Args:
        q: (B, H, K).
        k: (B, H, K).
        v: (B, H, K).
        state: s_{i-1} (B, H, K, K) and z_{i-1} (B, H, K) side by side; None before the first position.

    Returns:
        (B, H, K), and the state s_i and z_i.
    """
    sums = k.new_zeros(*k.shape, v.size(2) + 1) if state is None else state.sums  # equations (16) and (17)
    s = sums[..., :-1] + phi(k).unsqueeze(3) * v.unsqueeze(2)  # equation (18)
    z = sums[..., -1] + phi(k)  # equation (19)
    out = (phi(q).unsqueeze(2) @ s).squeeze(2) / (phi(q) * z).sum(2, keepdim=True)
    return out, State(torch.cat((s, z.unsqueeze(3)), dim=3))  # equation (20), without f_l and the residual


class LinearAttention(SelfAttention):
    """φ(Q)(φ(K)ᵀV) over its normaliser (equations 5 and 9) with φ(x) = elu(x) + 1 (equation 7)."""

    recurrent = True

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = MultiHeadAttention(
            query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, bias=True
        )

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`."""
        (k, v), q = self.heads.project(x), self.heads.queries(x)
        return self.heads.joined(linear_attention(q, k, v, mask, causal))

    def begin(self, like: Tensor, length: int) -> State | None:
        """s_0 = 0 and z_0 = 0 (equations 16 and 17)."""
        return None

    def step(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Equations (18) to (20)."""
        (k, v), q = self.heads.project(x.unsqueeze(1)), self.heads.queries(x.unsqueeze(1))
        heads, state = recurrent_step(q.squeeze(2), k.squeeze(2), v.squeeze(2), state)
        return self.heads.joined(heads.unsqueeze(2)).squeeze(1), state


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
        return self.heads(x, self.heads.project(x), mask=seen, causal=causal)[0]

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
        return self.heads(x, mask=mask, causal=causal)[0]

    def redraw(self, generator: torch.Generator) -> None:
        """Draw the hashes' rotations."""
        self.heads.redraw(generator)


class GridPositions(nn.Module):
    """Sinusoids of a pixel's row and of its column, side by side, where a picture is read row by row.

    A pixel and the one above it have the same column there; along the sequence they lie a row apart. Parmar et al.
    (2018, section 3.1) encode the coordinates of pixels so.

    Args:
        width: D, a multiple of 4.
        columns: pixels of a row.
    """

    def __init__(self, *, width: int, columns: int) -> None:
        super().__init__()
        self.columns = columns
        self.sinusoids = SinusoidalPositions(width=width // 2)

    def forward(self, start: int, stop: int) -> Tensor:
        """Encodings (stop - start, D) of the pixels from ``start`` to before ``stop``."""
        places = torch.arange(start, stop)
        table = self.sinusoids(0, max(self.columns, -(-stop // self.columns)))
        return torch.cat((table[places // self.columns], table[places % self.columns]), dim=1)


class LinearTransformer(SequenceTransformer):
    """T_l(x) = f_l(A_l(x) + x), equation (1), in every layer, normalised after each of the two sums.

    Where it is causal it is, step by step, the RNN of section 3.4. The output layer is a softmax, or for pixels a
    mixture of logistics; embedding and positions have half of the width each, or all of
    it, and are added.

    Args:
        sizes: those of :class:`SequenceTransformer`.
    """

    def __init__(self, **sizes: Any) -> None:
        super().__init__(norm="post", **sizes)
