"""Every attention of the house under one call: whoever adds one here gets all of its general tests.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from replications.self_attentive.model import StructuredSelfAttention
from replications.show_attend_tell.attention import HardAttention, Image, SoftAttention
from shared.attention import alignments, relative
from shared.attention.additive import AdditiveAttention
from shared.attention.favor import GeneralizedFeatures, SoftmaxFeatures
from shared.attention.feature_maps import EluPlusOne, FeatureMap, ReLU
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention, lsh_attention, lsh_attention_weights, lsh_buckets
from shared.attention.multi_head import IdentityAttention, MultiHeadAttention
from shared.attention.scaled_dot_product import attend, causal_mask
from shared.attention.softmax import masked_softmax
from shared.attention.twins import plain_equations

Weigh = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
"""(module, queries (B, Q, N), annotations (B, S, M), mask (B, S), true at words) to the weights (B, Q, S)."""


@dataclass(frozen=True)
class Attention:
    """One attention.

    Attributes:
        build: from the query width N and the annotation width M to a module.
        weights: how the module attends in its fast form.
        naive: the same from the paper's equations; default: the equations that the fast form is the twin of.
        causal: whether query i sees only the positions up to i; then Q = S.
        sums_to_one: whether a row of weights sums to one; otherwise it sums to at most one.
        equivariant: whether the weights of a reordered source are the reordered weights.
        to_itself: whether the queries are the annotations, as they are where it is causal; then Q = S.
        masked: whether it takes a mask; otherwise all sources of a batch are of one length.
        differentiable: whether weights have gradients.
        to_the_bit: whether a causal attention's weights stay the same to the last bit when the future changes.
    """

    build: Callable[[int, int], nn.Module]
    weights: Weigh
    naive: Weigh | None = None
    causal: bool = False
    sums_to_one: bool = True
    equivariant: bool = True
    to_itself: bool = False
    masked: bool = True
    differentiable: bool = True
    to_the_bit: bool = True

    @property
    def reads_itself(self) -> bool:
        """Whether the queries are the annotations."""
        return self.causal or self.to_itself

    def by_equation(self, module: nn.Module, *inputs: Tensor) -> Tensor:
        """The weights from the paper's equations."""
        if self.naive is not None:
            return self.naive(module, *inputs)
        with plain_equations():
            return self.weights(module, *inputs)


def unit_values(like: Tensor) -> Tensor:
    """Values (B, H, S, S) whose weighted sums are the weights, for keys (B, H, S, …)."""
    return torch.eye(like.size(2), dtype=like.dtype).expand(*like.shape[:2], -1, -1)


# Luong et al., with keys made once per source


class ScoredAlignment(nn.Module):
    """A score and an alignment together (Luong et al. 2015)."""

    def __init__(self, score: alignments.Score, alignment: alignments.Alignment) -> None:
        super().__init__()
        self.score, self.alignment = score, alignment

    def forward(self, queries: Tensor, annotations: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Contexts (B, Q, M) and weights (B, Q, S), as :meth:`Alignment.forward` has them."""
        keys, positions = self.score.keys(annotations), torch.arange(queries.size(1))
        return self.alignment(self.score, queries, keys, annotations, mask, positions)  # type: ignore[no-any-return]


def _pair(score: Callable[[int, int], alignments.Score], alignment: Callable[[int], alignments.Alignment]) -> Attention:
    """The registry's entry of a score and an alignment, by what they are built from."""
    kind = alignment(1)
    return Attention(
        build=lambda n, m: ScoredAlignment(score(n, m), alignment(n)),
        weights=lambda module, queries, annotations, mask: module(queries, annotations, mask)[1],
        sums_to_one=not isinstance(kind, alignments.LocalPredictive),
        equivariant=isinstance(kind, alignments.GlobalAlignment)
        and not isinstance(score(1, 1), alignments.LocationScore),
    )


_SCORES: dict[str, Callable[[int, int], alignments.Score]] = {
    "dot": lambda n, m: alignments.DotScore(),
    "general": lambda n, m: alignments.GeneralScore(query_size=n, key_size=m),
    "concat": lambda n, m: alignments.ConcatScore(query_size=n, key_size=m, alignment_size=5),
}
_ALIGNMENTS: dict[str, Callable[[int], alignments.Alignment]] = {
    "global": lambda n: alignments.GlobalAlignment(),
    "local-m": lambda n: alignments.LocalMonotonic(window=1),
    "local-p": lambda n: alignments.LocalPredictive(window=1, size=n),
}


# Heads


def _multi_head(*, causal: bool) -> Attention:
    """Multi-head attention: the mean of its heads' weights."""

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        assert isinstance(module, MultiHeadAttention)
        seen = mask[:, None, None]  # (B, 1, 1, S)
        if causal:
            seen = seen & causal_mask(queries.size(1), annotations.size(1))
        k, _ = module.project(annotations)
        # The kernel gives no weights, but where the values are the unit vectors the contexts are the weights.
        return attend(module.queries(queries), k, unit_values(k), mask=seen, scale=module.scale).mean(1)

    return Attention(
        build=lambda n, m: MultiHeadAttention(query_size=n, memory_size=m, heads=2, key_size=3, value_size=5),
        weights=weights, causal=causal,
    )  # fmt: skip


def _relative(positions: Callable[[int], nn.Module], *, biases: bool) -> Attention:
    """Attention by distance, without a memory: the mean of its heads' weights."""

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        assert isinstance(module, relative.RelativeMultiHeadAttention)
        encodings = torch.eye(annotations.size(2), dtype=annotations.dtype)  # any will do
        p = module.positions(encodings, annotations.size(1))
        heads: Tensor = module(queries, module.project(annotations), p, mask=mask.unsqueeze(1), weights=True)[1]
        return heads.mean(1)

    def build(n: int, m: int) -> nn.Module:
        return relative.RelativeMultiHeadAttention(
            width=n, heads=2, key_size=3, positions=positions(n),
            biases=relative.GlobalBiases(heads=2, key_size=3) if biases else None,
        )  # fmt: skip

    return Attention(build=build, weights=weights, causal=True)


def _identity(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """Every position has all weight on itself, as the values show."""
    weights: Tensor = module(queries, module.project(annotations), weights=True)[1]
    return weights.mean(1)


# Linear attention and FAVOR+


def _linear(
    features: Callable[[], FeatureMap], phi: Callable[[FeatureMap, Tensor], Tensor], *, causal: bool
) -> Attention:
    """The mean of the heads' weights φ(q)ᵀφ(k), for features that are ``phi(map, x)`` up to a factor of all."""

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        q, (k, scale) = (
            module.features.queries(module.queries(queries)),
            module.features.keys(module.project(annotations)[0], mask.unsqueeze(1)),
        )
        if causal:
            return chunkwise_linear_attention(q, k, unit_values(k), log_scale=scale, chunk=2)[0].mean(1)
        return linear_attention(q, k, unit_values(k), log_scale=scale).mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        q, k = phi(module.features, module.queries(queries)), phi(module.features, module.project(annotations)[0])
        seen = mask[:, None, None].expand(-1, 1, q.size(2), -1)
        seen = seen.tril() if causal else seen
        a = (q @ k.mT) * seen
        return (a / torch.where(seen.any(-1, keepdim=True), a.sum(-1, keepdim=True), 1)).mean(1)

    return Attention(
        build=lambda n, m: LinearMultiHeadAttention(
            query_size=n, memory_size=m, heads=2, key_size=3, value_size=5, features=features()
        ),
        weights=weights, naive=naive, causal=causal,
    )  # fmt: skip


def _softmax_features(features: FeatureMap, x: Tensor) -> Tensor:
    """Section 2.3 of Choromanski et al. (2021), up to the factor of all."""
    assert isinstance(features, SoftmaxFeatures)
    projected, half = x * features.root @ features.w.t(), (x * features.root).square().sum(-1, keepdim=True) / 2
    if features.estimator == "trigonometric":
        return half.exp() * torch.cat((projected.sin(), projected.cos()), -1)
    both = projected if features.estimator == "positive" else torch.cat((projected, -projected), -1)
    return (both - half).exp()


FEATURES: dict[str, tuple[Callable[[], FeatureMap], Callable[..., Tensor]]] = {
    "linear": (EluPlusOne, lambda features, x: functional.elu(x) + 1),
    "ReLU": (ReLU, lambda features, x: x.clamp(min=0) + features.epsilon),
    "FAVOR+ ReLU": (
        lambda: GeneralizedFeatures(key_size=3, projections=7),
        lambda features, x: (x * features.root @ features.w.t()).clamp(min=0) + features.epsilon,
    ),
    # The scale of trigonometric features is small: their products, which may be negative, are then all near one.
    **{
        f"FAVOR+ {estimator}": (
            partial(SoftmaxFeatures, key_size=3, projections=7, estimator=estimator, scale=scale), _softmax_features,
        )
        for estimator, scale in (("positive", 0.3), ("hyperbolic", 0.3), ("trigonometric", 1e-3))
    },
}  # fmt: skip


# Hashing


def _hashed(*, causal: bool) -> Attention:
    """The mean of the heads' weights; the twin compares all pairs."""

    def parts(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        qk = module.w_qk(x).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        return qk, lsh_buckets(qk, module.rotations)

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        qk, buckets = parts(module, queries)
        return lsh_attention(qk, unit_values(qk), buckets, chunk=module.chunk, causal=causal, mask=mask).mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        return lsh_attention_weights(*parts(module, queries), chunk=module.chunk, causal=causal, mask=mask).mean(1)

    return Attention(
        build=lambda n, m: LSHSelfAttention(
            width=n, heads=2, key_size=3, value_size=5, buckets=4, chunk=2, rounds=2
        ),
        weights=weights, naive=naive, causal=causal, to_itself=True, equivariant=False, to_the_bit=False,
    )  # fmt: skip


# Structured self-attention, and the captioner's


def _naive_structured(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """Equation 6 of Lin et al. (2017), an entry at a time."""
    w_1, w_2 = module.w_s1.weight, module.w_s2.weight
    scores = [torch.stack([torch.tanh(h @ w_1.t()) @ row for h in annotations.unbind(1)], -1) for row in w_2]
    return masked_softmax(torch.stack(scores, 1), mask.unsqueeze(1))


def _contexts_of_places(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """The context vectors of unit vectors at the places: soft weights, or the place chosen."""
    places = torch.eye(annotations.size(1), dtype=annotations.dtype).expand(len(annotations), -1, -1)
    return module(queries, Image(places, module.keys(annotations))).z_hat  # type: ignore[no-any-return]


ATTENTIONS: dict[str, Attention] = {
    "additive": Attention(
        build=lambda n, m: AdditiveAttention(query_size=n, key_size=m, alignment_size=5),
        weights=lambda module, queries, annotations, mask: module(queries, module.keys(annotations), mask),
    ),
    "multi-head": _multi_head(causal=False),
    "causal multi-head": _multi_head(causal=True),
    "Transformer-XL": _relative(lambda n: relative.ProjectedDistances(width=n, heads=2, key_size=3), biases=True),
    "Shaw": _relative(lambda n: relative.LearnedDistances(largest=2, key_size=3), biases=False),
    "global location": _pair(lambda n, m: alignments.LocationScore(query_size=n, positions=5), _ALIGNMENTS["global"]),
    **{
        f"{where} {what}": _pair(score, alignment)
        for where, alignment in _ALIGNMENTS.items()
        for what, score in _SCORES.items()
    },
    **{
        f"{name}{', causal' * causal}": _linear(features, phi, causal=causal)
        for name, (features, phi) in FEATURES.items()
        for causal in (False, True)
    },
    "LSH": _hashed(causal=False),
    "LSH, causal": _hashed(causal=True),
    "structured": Attention(
        build=lambda n, m: StructuredSelfAttention(annotation_size=m, attention_size=5, rows=3),
        weights=lambda module, queries, annotations, mask: module(annotations, mask),
        naive=_naive_structured,
    ),
    "captioner's soft": Attention(
        build=lambda n, m: SoftAttention(annotation_size=m, attention_size=n, layers=1),
        weights=_contexts_of_places, masked=False,
    ),
    "captioner's hard": Attention(
        build=lambda n, m: HardAttention(pathwise=True, annotation_size=m, attention_size=n, layers=1),
        weights=_contexts_of_places, masked=False, differentiable=False,
    ),
    "identity": Attention(
        build=lambda n, m: IdentityAttention(query_size=n, memory_size=m, heads=2, key_size=3, value_size=5),
        weights=_identity, causal=True, masked=False, differentiable=False,
    ),
}  # fmt: skip
"""By name; the doubly stochastic attention of Xu et al. is the soft one with a loss."""
