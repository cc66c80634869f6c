"""Additive attention (Bahdanau et al. 2015, section 3.1 and appendix A.1.2), and its weights as logarithms.

tanh(x) = 2 σ(2x) - 1, and on a CPU PyTorch's σ is several times faster than its tanh. So e = 2 v·σ(2x) - Σv, and the
constant, which no softmax sees, is left out.

Shape letters: B batch, S source length, Q queries, N state width, A alignment width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as


def energies_by_sigmoid(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """The twin of :func:`energies`, less the constant Σv."""
    return torch.sigmoid((2 * query).unsqueeze(2) + (2 * keys).unsqueeze(1)) @ (2 * v)


@runs_as(energies_by_sigmoid)
def energies(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """e = vᵀ tanh(query + key), up to a constant that no softmax sees: (B, Q, A), (B, S, A) and (A,) to (B, Q, S)."""
    return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ v


class AdditiveAttention(nn.Module):
    """e_ij = v_aᵀ tanh(W_a s_{i-1} + U_a h_j), α_i = softmax_j(e_ij).

    Args:
        query_size: width N of a decoder state s.
        key_size: width of an annotation h_j.
        alignment_size: width A (n′ in the paper) of the alignment layer.
    """

    def __init__(self, *, query_size: int, key_size: int, alignment_size: int) -> None:
        super().__init__()
        self.w_a = nn.Parameter(torch.empty(query_size, alignment_size))
        self.u_a = nn.Parameter(torch.empty(key_size, alignment_size))
        self.v_a = nn.Parameter(torch.empty(alignment_size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, std: float = 0.001) -> None:
        """W_a, U_a ~ N(0, std²), 0.001 in the paper; v_a = 0 (appendix B.1)."""
        self.w_a.normal_(std=std)
        self.u_a.normal_(std=std)
        self.v_a.zero_()

    def keys(self, annotations: Tensor) -> Tensor:
        """U_a h_j, which does not depend on the step: (B, S, 2N) to (B, S, A), once per source."""
        return annotations @ self.u_a

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Energies e, see :func:`energies`: (B, Q, N) and (B, S, A) to (B, Q, S)."""
        return energies(queries @ self.w_a, keys, self.v_a)

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Weights α: (B, Q, N), (B, S, A) and the mask (B, S), true at words, to (B, Q, S)."""
        return masked_softmax(self.scores(queries, keys), mask.unsqueeze(1))


def additive_log_weights(query: Tensor, keys: Tensor, u: Tensor) -> Tensor:
    """log α of e = uᵀ tanh(query + key) and α = softmax(e), for step loops.

    What the alignment layer makes for each query and each key is by far the largest tensor of a step. The hand-written
    backward pass goes over it as few times as it can, and so takes half as long as autograd's.

    Args:
        query: (B, Q, A).
        keys: (B, S, A).
        u: (A,).

    Returns:
        (B, Q, S) in the type of ``u``: autocast does not reach in here.
    """
    with torch.autocast(u.device.type, enabled=False):
        result: Tensor = _AdditiveLogWeights.apply(query.to(u.dtype), keys.to(u.dtype), u)  # type: ignore[no-untyped-call]
    return result


class _AdditiveLogWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, u: Tensor) -> Tensor:
        hidden = torch.add(2 * query.unsqueeze(2), keys.unsqueeze(1), alpha=2).sigmoid_()  # (B, Q, S, A)
        log_alpha = torch.log_softmax(hidden @ (2 * u), dim=-1)
        ctx.save_for_backward(hidden, log_alpha, u)
        return log_alpha

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (d_log_alpha,), (hidden, log_alpha, u) = gradients, ctx.saved_tensors
        d_e = d_log_alpha - log_alpha.exp() * d_log_alpha.sum(-1, keepdim=True)  # (B, Q, S)
        d_u = 2 * (hidden.flatten(0, 2).t() @ d_e.flatten())
        slope = torch.addcmul(hidden, hidden, hidden, value=-1)  # σ(1-σ), a quarter of the derivative of tanh
        d_sum = slope.mul_(d_e.unsqueeze(3)).mul_(4 * u)
        return d_sum.sum(2), d_sum.sum(1) if d_sum.size(1) > 1 else d_sum.squeeze(1), d_u
