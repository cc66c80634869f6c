"""Every attention of the house under one call: whoever adds one here gets all of its general tests.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from replications.transformer_xl.model import attend as attend_by_terms
from shared.attention.additive import AdditiveAttention
from shared.attention.alignments import (
    Alignment,
    GlobalAlignment,
    LocalAlignment,
    LocalMonotonic,
    LocalPredictive,
)
from shared.attention.multi_head import KeysValues, MultiHeadAttention
from shared.attention.relative import (
    GlobalBiases,
    LearnedDistances,
    ProjectedDistances,
    RelativeMultiHeadAttention,
    memory_mask,
)
from shared.attention.scaled_dot_product import attend, causal_mask
from shared.attention.scores import ConcatScore, DotScore, GeneralScore, LocationScore, Score
from shared.attention.softmax import masked_softmax
from tests.attention.entry import Attention
from tests.attention.registered_others import OTHERS


class ScoredAlignment(nn.Module):
    """A score and an alignment together (Luong et al. 2015)."""

    def __init__(self, score: Score, alignment: Alignment) -> None:
        super().__init__()
        self.score = score
        self.alignment = alignment

    def forward(self, queries: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Contexts (B, Q, M) and weights (B, Q, S), as :meth:`Alignment.forward` has them."""
        contexts, weights = self.alignment(self.score, queries, self.score.keys(annotations), annotations, mask)
        return contexts, weights


def _additive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    assert isinstance(module, AdditiveAttention)
    weights: Tensor = module(queries, module.keys(annotations), mask)
    return weights


def _naive_additive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """e_ij = v_aᵀ tanh(W_a s_i + U_a h_j), as Bahdanau et al. (2015) print it in appendix A.1.2."""
    assert isinstance(module, AdditiveAttention)
    rows = [
        torch.stack([torch.tanh(s @ module.w_a + h @ module.u_a) @ module.v_a for h in annotations.unbind(1)], -1)
        for s in queries.unbind(1)
    ]
    return masked_softmax(torch.stack(rows, dim=1), mask.unsqueeze(1))


def _scored(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    weights: Tensor = module(queries, annotations, mask)[1]
    return weights


def _naive_scored(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """a_t(s) from equations 7 to 10 of Luong et al. (2015), positions t and s counted from 1."""
    assert isinstance(module, ScoredAlignment)
    rows, size = [], annotations.size(1)
    for b, words in enumerate(mask.sum(1).tolist()):
        for t, h in enumerate(queries[b], 1):
            window, factor = _naive_window(module.alignment, h, t, words)
            scores = {s: _naive_score(module.score, h, annotations[b, s - 1], s) for s in window}
            total = sum(torch.exp(score) for score in scores.values())
            row = {s: torch.exp(score) / total * factor(s) for s, score in scores.items()}
            rows.append(torch.stack([row.get(s, h.new_zeros(())) for s in range(1, size + 1)]))
    return torch.stack(rows).view(*queries.shape[:2], size)


def _naive_score(score: nn.Module, h: Tensor, annotation: Tensor, s: int) -> Tensor:
    """score(h_t, h̄_s), equation 8 and the one before it."""
    if isinstance(score, DotScore):
        return h @ annotation
    if isinstance(score, GeneralScore):
        return h @ score.w_a @ annotation
    if isinstance(score, ConcatScore):
        return score.v_a @ torch.tanh(torch.cat((score.w_a, score.u_a)).t() @ torch.cat((h, annotation)))
    assert isinstance(score, LocationScore)
    return h @ score.w_a[:, s - 1] if s <= score.w_a.size(1) else h.new_tensor(-torch.inf)


def _naive_window(alignment: nn.Module, h: Tensor, t: int, words: int) -> tuple[list[int], Callable[[int], Tensor]]:
    """The source positions that h_t at t sees, and the factor that multiplies a position's weight."""
    p, one = h.new_tensor(min(t, words)), h.new_ones(())
    if not isinstance(alignment, LocalAlignment):
        return list(range(1, words + 1)), lambda s: one
    if isinstance(alignment, LocalPredictive):
        p = words * torch.sigmoid(alignment.v_p @ torch.tanh(alignment.w_p.t() @ h))
    d = len(alignment.offsets) // 2
    window = [s for s in range(1, words + 1) if abs(s - max(int(p), 1)) <= d]
    if not isinstance(alignment, LocalPredictive):
        return window, lambda s: one
    return window, lambda s: torch.exp(-((s - p) ** 2) / (2 * (d / 2) ** 2))


def _multi_head(*, causal: bool) -> Attention:
    """The registry's entry of multi-head attention: the mean of its heads' weights."""

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        assert isinstance(module, MultiHeadAttention)
        seen = mask[:, None, None]  # (B, 1, 1, S)
        if causal:
            seen = seen & causal_mask(queries.size(1), annotations.size(1))
        k, _ = module.project(annotations)
        # The kernel gives no weights, but where the values are the unit vectors the contexts are the weights.
        unit = torch.eye(k.size(2), dtype=k.dtype).expand(*k.shape[:2], -1, -1)  # (B, H, S, S)
        return attend(module.queries(queries), k, unit, mask=seen, scale=module.scale)[0].mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        """softmax(Q W_i^Q (K W_i^K)ᵀ / √d_k), equation 1 and section 3.2.2 of Vaswani et al. (2017)."""
        assert isinstance(module, MultiHeadAttention)
        w_q, w_k = module.w_q.weight, module.w_kv.weight
        heads = []
        for i in range(module.heads):
            one = slice(i * module.key_size, (i + 1) * module.key_size)
            q, k = queries @ w_q[one].t(), annotations @ w_k[one].t()
            scores = torch.stack([torch.stack([(a * b).sum(-1) for b in k.unbind(1)], -1) for a in q.unbind(1)], 1)
            seen = mask.unsqueeze(1).expand_as(scores)
            seen = seen.tril() if causal else seen
            heads.append(masked_softmax(scores / module.key_size**0.5, seen))
        return torch.stack(heads).mean(0)

    return Attention(
        build=lambda n, m: MultiHeadAttention(
            query_size=n, memory_size=m, heads=2, key_size=3, value_size=5
        ),
        weights=weights, naive=naive, causal=causal,
    )  # fmt: skip


def _relative(positions: Callable[[int], nn.Module], *, biases: bool) -> Attention:
    """The registry's entry of attention by distance, without a memory: the mean of its heads' weights."""

    def parts(module: nn.Module, annotations: Tensor) -> tuple[RelativeMultiHeadAttention, KeysValues, Tensor]:
        assert isinstance(module, RelativeMultiHeadAttention)
        encodings = torch.eye(annotations.size(2), dtype=annotations.dtype)  # any will do
        return module, module.project(annotations), module.positions(encodings, annotations.size(1))

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        attention, context, p = parts(module, annotations)
        heads: Tensor = attention(queries, context, p, mask=mask.unsqueeze(1), weights=True)[1]
        return heads.mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        """Terms a to d of section 3.3 of Dai et al. (2019), or a and b alone."""
        attention, _, _ = parts(module, annotations)
        seen = memory_mask(queries.size(1), annotations.size(1)) & mask.unsqueeze(1)
        encodings = torch.eye(annotations.size(2), dtype=annotations.dtype)
        return attend_by_terms(attention, queries, annotations, encodings, seen.unsqueeze(1))[1].mean(1)

    def build(n: int, m: int) -> nn.Module:
        return RelativeMultiHeadAttention(
            width=n, heads=2, key_size=3, positions=positions(n),
            biases=GlobalBiases(heads=2, key_size=3) if biases else None,
        )  # fmt: skip

    return Attention(build=build, weights=weights, naive=naive, causal=True)


def _pair(score: Callable[[int, int], Score], alignment: Callable[[int], Alignment]) -> Attention:
    """The registry's entry of a score and an alignment, by what they are built from."""
    kind = alignment(1)
    return Attention(
        build=lambda n, m: ScoredAlignment(score(n, m), alignment(n)),
        weights=_scored,
        naive=_naive_scored,
        sums_to_one=not isinstance(kind, LocalPredictive),
        equivariant=isinstance(kind, GlobalAlignment) and score(1, 1).content_based,
    )


_SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": lambda n, m: DotScore(),
    "general": lambda n, m: GeneralScore(query_size=n, key_size=m),
    "concat": lambda n, m: ConcatScore(query_size=n, key_size=m, alignment_size=5),
}
_ALIGNMENTS: dict[str, Callable[[int], Alignment]] = {
    "global": lambda n: GlobalAlignment(),
    "local-m": lambda n: LocalMonotonic(window=1),
    "local-p": lambda n: LocalPredictive(window=1, size=n),
}

ATTENTIONS: dict[str, Attention] = {
    "additive": Attention(
        build=lambda n, m: AdditiveAttention(query_size=n, key_size=m, alignment_size=5),
        weights=_additive,
        naive=_naive_additive,
    ),
    "multi-head": _multi_head(causal=False),
    "causal multi-head": _multi_head(causal=True),
    "Transformer-XL": _relative(lambda n: ProjectedDistances(width=n, heads=2, key_size=3), biases=True),
    "Shaw": _relative(lambda n: LearnedDistances(largest=2, key_size=3), biases=False),
    "global location": _pair(lambda n, m: LocationScore(query_size=n, positions=5), _ALIGNMENTS["global"]),
    **{
        f"{where} {what}": _pair(score, alignment)
        for where, alignment in _ALIGNMENTS.items()
        for what, score in _SCORES.items()
    },
    **OTHERS,
}
"""By name."""
