"""Every attention of the house under one call: whoever adds one here gets all of its general tests.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from shared.attention.additive import AdditiveAttention
from shared.attention.softmax import masked_softmax

Weigh = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
"""(module, queries (B, Q, N), annotations (B, S, M), mask (B, S), true at words) to the weights (B, Q, S)."""


@dataclass(frozen=True)
class Attention:
    """One attention.

    Attributes:
        build: from the query width N and the annotation width M to a module.
        weights: how the module attends in its fast form.
        naive: the same from the paper's equations, one pair of query and annotation at a time.
        causal: whether query i sees only the positions up to i; then Q = S.
    """

    build: Callable[[int, int], nn.Module]
    weights: Weigh
    naive: Weigh
    causal: bool = False


def _additive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    assert isinstance(module, AdditiveAttention)
    weights: Tensor = module(queries, module.keys(annotations), mask)
    return weights


def _naive_additive(module: nn.Module, queries: Tensor, annotations: Tensor, mask: Tensor) -> Tensor:
    """e_ij = v_aᵀ tanh(W_a s_i + U_a h_j), as Bahdanau et al. (2015) print it in appendix A.1.2."""
    assert isinstance(module, AdditiveAttention)
    rows = [
        torch.stack(
            [torch.tanh(s @ module.w_a + h @ module.u_a) @ module.v_a for h in annotations.unbind(1)], -1
        )
        for s in queries.unbind(1)
    ]
    return masked_softmax(torch.stack(rows, dim=1), mask.unsqueeze(1))


ATTENTIONS: dict[str, Attention] = {
    "additive": Attention(
        build=lambda n, m: AdditiveAttention(query_size=n, key_size=m, alignment_size=5),
        weights=_additive,
        naive=_naive_additive,
    ),
}
"""By name."""
