"""Additive attention (Bahdanau et al. 2015, section 3.1 and appendix A.1.2).

Shape letters: B batch, S source length, Q queries, N state width, A alignment width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax


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
        """Energies e less Σv_a, which no softmax sees: (B, Q, N) and (B, S, A) to (B, Q, S).

        tanh(a) = 2 σ(2a) - 1, and on a CPU PyTorch's σ is several times faster than its tanh.
        """
        return torch.sigmoid((2 * (queries @ self.w_a)).unsqueeze(2) + (2 * keys).unsqueeze(1)) @ (2 * self.v_a)

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Weights α: (B, Q, N), (B, S, A) and the mask (B, S), true at words, to (B, Q, S)."""
        return masked_softmax(self.scores(queries, keys), mask.unsqueeze(1))
