"""Adaptive input embeddings and the adaptive softmax that shares their weights.

Words are numbered from the most to the least frequent, and cutoffs part them into clusters. A word of the first is
predicted by the head; one of cluster i > 0 by the head, which has an output for each such cluster, times that cluster's
own softmax, its tail (Grave et al. 2017, section 4). Only the tokens of a cluster go through its tail, so frequent
words are cheap. Cluster i has embeddings of width d_i = ⌊D / div_val^i⌋, and a projection from and to width D unless
all are as wide as the model (Baevski & Auli 2019, section 3). What is tied to what is as in Dai et al. (2019).

Without cutoffs all words are in the head: a plain tied softmax.

Shape letters: V vocabulary, D model width, C clusters, N tokens, however many dimensions they stand in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.errors import ReplicationError


class AdaptiveEmbedding(nn.Module):
    """√D · P_i e_w for the word w of cluster i, e_w of width d_i; √D · e_w where ``div_val`` is 1.

    Args:
        vocabulary: V, words by falling frequency.
        width: D.
        cutoffs: first word of every cluster but the first; none for a plain embedding.
        div_val: how many times narrower each cluster's embeddings are than those of the one before.
        std: of the normal distribution that embeddings, and clusters in the head, are drawn from.
        projection_std: of that of projections.

    Raises:
        ReplicationError: there are no such clusters.
    """

    def __init__(
        self, *, vocabulary: int, width: int, cutoffs: Sequence[int] = (), div_val: int = 1,
        std: float = 0.02, projection_std: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__()
        bounds = (0, *cutoffs, vocabulary)
        widths = [width // div_val**i for i in range(len(bounds) - 1)] if div_val >= 1 else []
        _check(bounds, widths, div_val)
        self.width, self.bounds, self.std, self.projection_std = width, bounds, std, projection_std
        self.cutoffs: Tensor
        self.register_buffer("cutoffs", torch.tensor(cutoffs, dtype=torch.long), persistent=False)
        self.tables = nn.ParameterList(
            _normal(stop - start, d, std) for (start, stop), d in zip(pairwise(bounds), widths, strict=True)
        )
        self.projections = nn.ParameterList(_normal(width, d, projection_std) for d in (widths if div_val > 1 else ()))

    def forward(self, tokens: Tensor) -> Tensor:
        """Word numbers (…) to their embeddings (…, D)."""
        ordered, _, order, counts = self.by_cluster(tokens.flatten())
        parts = []
        for i, words in enumerate(ordered.split(counts)):
            e = functional.embedding(words - self.bounds[i], self.tables[i])  # (N_i, d_i)
            parts.append(functional.linear(e, self.projections[i]) if self.projections else e)
        x = torch.cat(parts).to(self.tables[0].dtype).index_select(0, order.argsort())  # (N, D)
        return math.sqrt(self.width) * x.view(*tokens.shape, self.width)

    def by_cluster(self, words: Tensor) -> tuple[Tensor, Tensor, Tensor, list[int]]:
        """Order words by cluster.

        Returns:
            The words (N,) in that order, the clusters (N,) they are of, their places before (N,), and C counts.
        """
        if len(self.tables) == 1:  # nothing to order, and no reason to wait for an accelerator's counts
            return words, torch.zeros_like(words), torch.arange(len(words), device=words.device), [len(words)]
        clusters, order = torch.bucketize(words.contiguous(), self.cutoffs, right=True).sort(stable=True)
        counts: list[int] = torch.bincount(clusters, minlength=len(self.tables)).tolist()
        return words[order], clusters, order, counts


class AdaptiveSoftmax(nn.Module):
    """p(w | h) = softmax_head(w) in the first cluster, softmax_head(cluster i) · softmax_i(w) in the others.

    The logits of cluster i are E_i P_iᵀ h + b_i with the embedding's own E_i and, where tied, its own P_i; in the head
    the C - 1 clusters follow the words, in their order. (The authors' PyTorch code has the clusters' rows reversed, and
    returns losses in order of clusters unless told otherwise.)

    Args:
        embedding: shares its weights; it becomes a submodule of this module, and a model accesses it from here.
        tied_projections: for each of the C clusters, whether its projection is that of the embedding. By default no
            projection is tied, as for One Billion Word in Dai et al.; for WikiText-103 they tie all but the first.
            With ``div_val`` 1 there are no projections, and the setting has no effect.

    Raises:
        ReplicationError: ``tied_projections`` are not as many as clusters.
    """

    def __init__(self, embedding: AdaptiveEmbedding, *, tied_projections: Sequence[bool] = ()) -> None:
        super().__init__()
        clusters, width = len(embedding.tables), embedding.width
        tied = tuple(tied_projections) or (False,) * clusters
        if len(tied) != clusters:
            raise ReplicationError(
                f"there are {clusters} clusters and {len(tied)} tied projections; say of every cluster whether its "
                "projection is tied, or of none."
            )
        self.embedding = embedding
        self.head_size = len(embedding.tables[0])
        sizes = [self.head_size + clusters - 1, *map(len, embedding.tables[1:])]
        self.biases = nn.ParameterList(torch.zeros(size) for size in sizes)
        self.cluster_weight = _normal(clusters - 1, width, embedding.std) if clusters > 1 else None
        self.projections = nn.ParameterDict(
            {str(i): _normal(p.size(0), p.size(1), embedding.projection_std)
             for i, p in enumerate(embedding.projections) if not tied[i]}
        )  # fmt: skip

    def forward(self, h: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood of words: states (…, D) and word numbers (…) to nats (…), float32 or wider.

        A cluster without words among the targets takes no products, and gets gradients of zero.
        """
        words, clusters, order, counts = self.embedding.by_cluster(targets.flatten())
        h = h.reshape(-1, h.size(-1)).index_select(0, order)  # (N, D)
        in_head = torch.where(clusters == 0, words, self.head_size - 1 + clusters)
        nll = _nll(self.logits(0, h), in_head)
        in_tails = [
            _nll(self.logits(i, h_i), words_i - self.embedding.bounds[i])
            for i, (h_i, words_i) in enumerate(zip(h.split(counts), words.split(counts), strict=True))
            if i > 0
        ]
        nll = nll + torch.cat((nll.new_zeros(counts[0]), *in_tails))
        return nll.index_select(0, order.argsort()).view_as(targets)

    def log_probs(self, h: Tensor) -> Tensor:
        """Log-probabilities of all words: states (…, D) to (…, V), float32 or wider."""
        head = _wide(self.logits(0, h)).log_softmax(-1)
        words, clusters = head.tensor_split((self.head_size,), dim=-1)  # (…, V_0), (…, C - 1)
        tails = [
            cluster.unsqueeze(-1) + _wide(self.logits(i, h)).log_softmax(-1)
            for i, cluster in enumerate(clusters.unbind(-1), start=1)
        ]
        return torch.cat((words, *tails), dim=-1)

    def logits(self, i: int, h: Tensor) -> Tensor:
        """Of cluster i: (…, D) to (…, V_i), those of the other clusters after the words if it is the head."""
        e = self.embedding.tables[i]
        if self.embedding.projections:
            own = str(i) in self.projections
            p = self.projections[str(i)] if own else self.embedding.projections[i]  # (D, d_i)
            h = h @ p
        if i == 0 and self.cluster_weight is not None:
            e = torch.cat((e, self.cluster_weight))
        return functional.linear(h, e, self.biases[i])


def _normal(rows: int, columns: int, std: float) -> nn.Parameter:
    return nn.Parameter(nn.init.normal_(torch.empty(rows, columns), std=std))


def _wide(logits: Tensor) -> Tensor:
    """In float32 if they are narrower: a softmax over a vocabulary adds up many small numbers."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _nll(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(_wide(logits), labels, reduction="none")


def _check(bounds: Sequence[int], widths: Sequence[int], div_val: int) -> None:
    if any(start >= stop for start, stop in pairwise(bounds)):
        raise ReplicationError(
            f"cutoffs {list(bounds[1:-1])} do not part {bounds[-1]} words into clusters; let them rise from above 0 to "
            "below the size of the vocabulary."
        )
    if div_val < 1 or (div_val > 1 and len(bounds) == 2) or not widths[-1]:
        raise ReplicationError(
            f"div_val {div_val} does not fit {len(bounds) - 1} clusters; let it be 1 where there are no cutoffs, and "
            "otherwise a whole number that leaves the last cluster a width of at least 1."
        )
