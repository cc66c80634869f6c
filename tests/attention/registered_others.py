"""Entries of the registry whose attention gives no weights, or takes no queries, or no mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from replications.self_attentive.model import StructuredSelfAttention
from replications.show_attend_tell.attention import HardAttention, Image, SoftAttention
from shared.attention.favor import GeneralizedFeatures, SoftmaxFeatures
from shared.attention.feature_maps import EluPlusOne, FeatureMap, ReLU
from shared.attention.identity import IdentityAttention
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention, lsh_attention, lsh_attention_weights, lsh_buckets
from shared.attention.softmax import masked_softmax
from tests.attention.entry import Attention


def unit_values(like: Tensor) -> Tensor:
    """Values (B, H, S, S) whose weighted sums are the weights, for keys (B, H, S, …)."""
    return torch.eye(like.size(2), dtype=like.dtype).expand(*like.shape[:2], -1, -1)


# Linear attention and FAVOR+


def linear(features: Callable[[], FeatureMap], kernel: Callable[[FeatureMap, Tensor, Tensor], Tensor], *, causal: bool):
    """The mean of the heads' weights φ(q)ᵀφ(k), for features whose products are ``kernel(map, q, k)``."""

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        (k, scale), _ = module.project(annotations, mask)
        if causal:
            heads, _ = chunkwise_linear_attention(
                module.queries(queries), k, unit_values(k), log_scale=scale, chunk=module.chunk
            )
        else:
            heads = linear_attention(module.queries(queries), k, unit_values(k), log_scale=scale)
        return heads.mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        w_q, w_k = module.w_q.weight, module.w_kv.weight
        seen, heads = mask.unsqueeze(1).expand(-1, queries.size(1), -1), []
        seen = seen.tril() if causal else seen
        for i in range(module.heads):
            one = slice(3 * i, 3 * i + 3)
            a = kernel(module.features, queries @ w_q[one].t(), annotations @ w_k[one].t()) * seen
            total = a.sum(-1, keepdim=True)
            heads.append(a / torch.where(seen.any(-1, keepdim=True), total, 1))
        return torch.stack(heads).mean(0)

    return Attention(
        build=lambda n, m: LinearMultiHeadAttention(
            query_size=n, memory_size=m, heads=2, key_size=3, value_size=5, features=features(), chunk=2
        ),
        weights=weights, naive=naive, causal=causal,
    )  # fmt: skip


def products(phi: Callable[[FeatureMap, Tensor], Tensor], features: FeatureMap, q: Tensor, k: Tensor) -> Tensor:
    """φ(q_i)ᵀφ(k_j), a pair at a time."""
    a, b = phi(features, q), phi(features, k)
    return torch.stack([torch.stack([(x * y).sum(-1) for y in b.unbind(1)], -1) for x in a.unbind(1)], 1)


def softmax_features(features: SoftmaxFeatures, x: Tensor) -> Tensor:
    """Section 2.3 of Choromanski et al. (2021), up to the factor of all."""
    projected, half = x * features.root @ features.w.t(), (x * features.root).square().sum(-1, keepdim=True) / 2
    if features.estimator == "trigonometric":
        return half.exp() * torch.cat((projected.sin(), projected.cos()), -1)
    both = projected if features.estimator == "positive" else torch.cat((projected, -projected), -1)
    return (both - half).exp()


FEATURES: dict[str, tuple[Callable[[], FeatureMap], Callable[[FeatureMap, Tensor], Tensor]]] = {
    "linear": (EluPlusOne, lambda features, x: functional.elu(x) + 1),
    "ReLU": (ReLU, lambda features, x: x.clamp(min=0) + features.epsilon),
    "FAVOR+ ReLU": (
        lambda: GeneralizedFeatures(key_size=3, projections=7),
        lambda features, x: (x * features.root @ features.w.t()).clamp(min=0) + features.epsilon,
    ),
    # The scale of trigonometric features is small: their products, which may be negative, are then all near one.
    **{
        f"FAVOR+ {estimator}": (
            partial(SoftmaxFeatures, key_size=3, projections=7, estimator=estimator, scale=scale), softmax_features,
        )
        for estimator, scale in (("positive", 0.3), ("hyperbolic", 0.3), ("trigonometric", 1e-3))
    },
}  # fmt: skip


# Hashing


def hashed(*, causal: bool) -> Attention:
    """The mean of the heads' weights; the twin compares all pairs."""

    def parts(module: LSHSelfAttention, x: Tensor) -> tuple[Tensor, Tensor]:
        qk = module.w_qk(x).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        return qk, lsh_buckets(qk, module.rotations)

    def weights(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        qk, buckets = parts(module, queries)
        return lsh_attention(qk, unit_values(qk), buckets, chunk=module.chunk, causal=causal, mask=mask).mean(1)

    def naive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
        qk, buckets = parts(module, queries)
        return lsh_attention_weights(qk, buckets, chunk=module.chunk, causal=causal, mask=mask).mean(1)

    return Attention(
        build=lambda n, m: LSHSelfAttention(
            width=n, heads=2, key_size=3, value_size=5, buckets=4, chunk=2, rounds=2
        ),
        weights=weights, naive=naive, causal=causal, to_itself=True, equivariant=False, to_the_bit=False,
    )  # fmt: skip


# Structured self-attention, the captioner's, and none


def naive_structured(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """Equation 6 of Lin et al. (2017), an entry at a time."""
    w_1, w_2 = module.w_s1.weight, module.w_s2.weight
    scores = [torch.stack([torch.tanh(h @ w_1.t()) @ row for h in annotations.unbind(1)], -1) for row in w_2]
    return masked_softmax(torch.stack(scores, 1), mask.unsqueeze(1))


def naive_soft(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """Equations 4 and 5 of Xu et al. (2015), a place at a time."""
    w_c, u = module.w_c[0], module.u.weight[0]
    places = [torch.tanh(w_c(a).unsqueeze(1) + queries) @ u for a in annotations.unbind(1)]
    return torch.stack(places, -1).softmax(-1)


def context_of_places(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """The context vectors of unit vectors at the places: soft weights, or the place chosen."""
    places = torch.eye(annotations.size(1), dtype=annotations.dtype).expand(len(annotations), -1, -1)
    return module(queries, Image(places, module.keys(annotations))).z_hat


def naive_hard(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """All weight on the likeliest place."""
    alpha = naive_soft(module, queries, annotations, mask)
    return functional.one_hot(alpha.argmax(-1), alpha.size(-1)).to(alpha.dtype)


def identity(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """Every position has all weight on itself, as the values show."""
    keys, _ = module.project(annotations)
    assert math.prod(keys.shape[:2]) > 0
    _, a = module(queries, module.project(annotations), weights=True)
    return a.mean(1)


OTHERS: dict[str, Attention] = {
    **{
        f"{name}{', causal' * causal}": linear(features, partial(products, phi), causal=causal)
        for name, (features, phi) in FEATURES.items()
        for causal in (False, True)
    },
    "LSH": hashed(causal=False),
    "LSH, causal": hashed(causal=True),
    "structured": Attention(
        build=lambda n, m: StructuredSelfAttention(annotation_size=m, attention_size=5, rows=3),
        weights=lambda module, queries, annotations, mask: module(annotations, mask),
        naive=naive_structured,
    ),
    "captioner's soft": Attention(
        build=lambda n, m: SoftAttention(annotation_size=m, attention_size=n, layers=1),
        weights=context_of_places, naive=naive_soft, masked=False,
    ),
    "captioner's hard": Attention(
        build=lambda n, m: HardAttention(pathwise=True, annotation_size=m, attention_size=n, layers=1),
        weights=context_of_places, naive=naive_hard, masked=False, differentiable=False,
    ),
    "identity": Attention(
        build=lambda n, m: IdentityAttention(query_size=n, memory_size=m, heads=2, key_size=3, value_size=5),
        weights=identity,
        naive=lambda module, queries, annotations, mask: torch.eye(queries.size(1), dtype=queries.dtype).expand(
            len(queries), -1, -1
        ),
        causal=True, masked=False, differentiable=False,
    ),
}  # fmt: skip
"""By name; the doubly stochastic attention of Xu et al. is the soft one with a loss."""
