"""Transformer-XL as one would write it first: the comparison partner of benchmarks and tests.

Section 3.3 and appendix B of Dai et al. (2019): the memory is a list of states that are joined to each segment, whose
keys and values are made anew, and scores of distances are padded, reshaped and copied into place. Probabilities are
those of the whole vocabulary; of the clusters' words as in Grave et al. (2017).

Shape letters: B columns, T symbols of a segment, M length of the memory, S = M + T, D model width, H heads, K key
width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from shared.decoding.protocol import Reach
from shared.layers.positions import sinusoids


def relative_shift(x: Tensor) -> Tensor:
    """(B, H, T, S), column c of distance S - 1 - c, to column j of key j: appendix B, with a copy in its last step."""
    columns, heads, queries, keys = x.shape
    padded = torch.cat((x.new_zeros(columns, heads, queries, 1), x), dim=3)
    return padded.view(columns, heads, keys + 1, queries)[:, :, 1:].reshape_as(x)


def hidden(queries: int, keys: int, reach: Reach) -> Tensor:
    """(T, S) bool, true where a query may not look."""
    places, others = torch.arange(keys - queries, keys).unsqueeze(1), torch.arange(keys)
    later, distant = others > places, others <= places - reach.memory
    return later | distant if reach.same_length else later


class PlainLayer(nn.Module):
    """The layer n of section 3.3."""

    def __init__(self, *, width: int, heads: int, key_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.w_q, self.w_ke, self.w_v, self.w_kr = (nn.Linear(width, heads * key_size, bias=False) for _ in range(4))
        self.w_o = nn.Linear(heads * key_size, width, bias=False)
        self.inner, self.outer = nn.Linear(width, hidden_size), nn.Linear(hidden_size, width)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, memory: Tensor, r: Tensor, u: Tensor, v: Tensor, unseen: Tensor) -> Tensor:
        """(B, T, D), (B, M, D), (S, D), (H, K), (H, K) and (T, S) to (B, T, D)."""
        context = torch.cat((memory.detach(), h), dim=1)
        q = self.w_q(h).unflatten(2, (self.heads, -1))  # (B, T, H, K)
        k, values = (w(context).unflatten(2, (self.heads, -1)).transpose(1, 2) for w in (self.w_ke, self.w_v))
        k_r = self.w_kr(r).unflatten(1, (self.heads, -1)).transpose(0, 1)  # (H, S, K)
        by_content = (q + u).transpose(1, 2) @ k.transpose(2, 3)  # a and c, (B, H, T, S)
        by_distance = relative_shift((q + v).transpose(1, 2) @ k_r.transpose(1, 2))  # b and d
        scores = (by_content + by_distance) / math.sqrt(q.size(3))
        a = self.dropout(torch.softmax(scores.masked_fill(unseen, -torch.inf), dim=3))
        o = self.attention_norm(h + self.dropout(self.w_o((a @ values).transpose(1, 2).flatten(2))))
        inner = self.dropout(torch.relu(self.inner(o)))
        out: Tensor = self.feed_forward_norm(o + self.dropout(self.outer(inner)))
        return out


class PlainTransformerXL(nn.Module):
    """The whole model.

    Args:
        vocabulary: V.
        width: D.
        layers: N.
        heads: H.
        key_size: K.
        hidden_size: d_inner.
        dropout: on all, attention's weights too.
        untied_biases: whether each layer has its own u and v.
        cutoffs: first words of clusters, but the first's.
        div_val: by how much their embeddings get narrower.
        tied: of each cluster, whether the softmax has the embedding's projection.
    """

    def __init__(
        self, *, vocabulary: int, width: int, layers: int, heads: int, key_size: int, hidden_size: int,
        dropout: float = 0.0, untied_biases: bool = False, cutoffs: Sequence[int] = (), div_val: int = 1,
        tied: Sequence[bool] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        sizes = [stop - start for start, stop in pairwise((0, *cutoffs, vocabulary))]
        widths = [width // div_val**i for i in range(len(sizes))]
        self.width = width
        self.layers = nn.ModuleList(
            PlainLayer(width=width, heads=heads, key_size=key_size, hidden_size=hidden_size, dropout=dropout)
            for _ in range(layers)
        )
        biases = layers if untied_biases else 1
        self.u, self.v = (nn.Parameter(0.02 * torch.randn(biases, heads, key_size)) for _ in range(2))
        self.embeddings = nn.ParameterList(0.02 * torch.randn(size, d) for size, d in zip(sizes, widths, strict=True))
        self.projections = nn.ParameterList(torch.randn(width, d) / width for d in widths if div_val > 1)
        own = [not t for t in tied or [False] * len(sizes)]
        self.own_projections = nn.ParameterDict(
            {str(i): torch.randn_like(p) / width for i, p in enumerate(self.projections) if own[i]}
        )
        self.clusters = nn.Parameter(0.02 * torch.randn(len(cutoffs), width))
        self.biases = nn.ParameterList(torch.zeros(size) for size in [sizes[0] + len(cutoffs), *sizes[1:]])
        self.dropout = nn.Dropout(dropout)

    def begin(self, columns: int) -> list[Tensor]:
        """The memory of N layers before anything is read."""
        return [self.u.new_zeros(columns, 0, self.width) for _ in self.layers]

    def forward(
        self, inputs: Tensor, targets: Tensor, memories: list[Tensor], reach: Reach
    ) -> tuple[Tensor, list[Tensor]]:
        """(B, T) and (B, T) to nats (B, T), and the memory of what comes next: the last M that each layer was given."""
        queries, keys = inputs.size(1), memories[0].size(1) + inputs.size(1)
        distances = torch.arange(keys - 1, -1, -1)
        if reach.clamp is not None:
            distances = distances.clamp(max=reach.clamp)
        r = self.dropout(sinusoids(distances, self.width).to(self.u.dtype))
        unseen = hidden(queries, keys, reach)
        h, kept = self.dropout(self.embed(inputs)), []
        for n, (layer, memory) in enumerate(zip(self.layers, memories, strict=True)):
            joined = torch.cat((memory, h), dim=1).detach()
            kept.append(joined[:, max(0, keys - reach.memory) :])
            own = n if len(self.u) > 1 else 0
            h = layer(h, memory, r, self.u[own], self.v[own], unseen)
        return -self.log_probs(self.dropout(h)).gather(2, targets.unsqueeze(2)).squeeze(2), kept

    def embed(self, inputs: Tensor) -> Tensor:
        """(B, T) to (B, T, D): √D times the row of a table of all words."""
        tables = [*self.embeddings]
        if len(self.projections):
            tables = [e @ p.t() for e, p in zip(tables, self.projections, strict=True)]
        return math.sqrt(self.width) * nn.functional.embedding(inputs, torch.cat(tables))

    def log_probs(self, h: Tensor) -> Tensor:
        """(B, T, D) to (B, T, V)."""
        tables = [torch.cat((self.embeddings[0], self.clusters)), *self.embeddings[1:]]
        outputs = []
        for i, (table, bias) in enumerate(zip(tables, self.biases, strict=True)):
            projected = h
            if len(self.projections):
                own = str(i) in self.own_projections
                projected = h @ (self.own_projections[str(i)] if own else self.projections[i])
            outputs.append(torch.log_softmax(projected @ table.t() + bias, dim=2))
        head, *tails = outputs
        words, *clusters = head.split([len(self.embeddings[0]), *[1] * len(tails)], dim=2)
        return torch.cat((words, *(c + tail for c, tail in zip(clusters, tails, strict=True))), dim=2)
