"""FAVOR+'s features as section 2.3 of Choromanski et al. (2021) prints them, and what they are tried with."""

import math

import torch

from shared.attention.favor import SoftmaxFeatures

F64 = torch.float64
B, H, T, K, P, V = 2, 2, 50, 8, 20, 5
ESTIMATORS = ("positive", "hyperbolic", "trigonometric")


def softmax_map(estimator="positive", dtype=F64, **others):
    return SoftmaxFeatures(**{"key_size": K, "projections": P, "estimator": estimator} | others).to(dtype)


def inputs(scale=1.0, dtype=F64):
    """Queries and keys of norms around ``scale`` · √K, and values."""
    q, k = scale * torch.randn(2, B, H, T, K, dtype=dtype)
    return q, k, torch.randn(B, H, T, V, dtype=dtype)


def plain_features(features, x):
    """Nothing is done about overflow."""
    x = x * K**-0.25
    projected, half = x @ features.w.T, x.square().sum(-1, keepdim=True) / 2
    if features.estimator == "trigonometric":
        return half.exp() / math.sqrt(P) * torch.cat((projected.sin(), projected.cos()), -1)
    if features.estimator == "positive":
        return (-half).exp() / math.sqrt(P) * projected.exp()
    return (-half).exp() / math.sqrt(2 * P) * torch.cat((projected.exp(), (-projected).exp()), -1)
