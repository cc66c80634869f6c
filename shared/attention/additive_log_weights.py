"""Additive attention's weights as logarithms, for step loops: what estimators and penalties of attention are made of.

What the alignment layer makes for each query and each key is by far the largest tensor of a step. The hand-written
backward pass goes over it as few times as it can, and so takes half as long as autograd's.

Shape letters: B batch, Q queries, L keys, A alignment width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def additive_log_weights(query: Tensor, keys: Tensor, u: Tensor) -> Tensor:
    """log α of e = uᵀ tanh(query + key) and α = softmax(e).

    tanh(x) = 2 σ(2x) - 1, and on a CPU PyTorch's σ is several times faster than its tanh; the constant, which no
    softmax sees, is left out.

    Args:
        query: (B, Q, A).
        keys: (B, L, A).
        u: (A,).

    Returns:
        (B, Q, L) in the type of ``u``: autocast does not reach in here.
    """
    with torch.autocast(u.device.type, enabled=False):
        result: Tensor = _AdditiveLogWeights.apply(query.to(u.dtype), keys.to(u.dtype), u)  # type: ignore[no-untyped-call]
    return result


class _AdditiveLogWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, u: Tensor) -> Tensor:
        hidden = torch.add(2 * query.unsqueeze(2), keys.unsqueeze(1), alpha=2).sigmoid_()  # (B, Q, L, A)
        log_alpha = torch.log_softmax(hidden @ (2 * u), dim=-1)
        ctx.save_for_backward(hidden, log_alpha, u)
        return log_alpha

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (d_log_alpha,), (hidden, log_alpha, u) = gradients, ctx.saved_tensors
        d_e = d_log_alpha - log_alpha.exp() * d_log_alpha.sum(-1, keepdim=True)  # (B, Q, L)
        d_u = 2 * (hidden.flatten(0, 2).t() @ d_e.flatten())
        slope = torch.addcmul(hidden, hidden, hidden, value=-1)  # σ(1-σ), a quarter of the derivative of tanh
        d_sum = slope.mul_(d_e.unsqueeze(3)).mul_(4 * u)
        return d_sum.sum(2), d_sum.sum(1) if d_sum.size(1) > 1 else d_sum.squeeze(1), d_u
