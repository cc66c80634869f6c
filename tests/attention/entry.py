"""What the registry says of an attention.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

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
        sums_to_one: whether a row of weights sums to one; otherwise it sums to at most one.
        equivariant: whether the weights of a reordered source are the reordered weights.
        to_itself: whether the queries are the annotations, as they are where it is causal; then Q = S.
        masked: whether it takes a mask; otherwise all sources of a batch are of one length.
        differentiable: whether weights have gradients.
        to_the_bit: whether a causal attention's weights stay the same to the last bit when the future changes.
    """

    build: Callable[[int, int], nn.Module]
    weights: Weigh
    naive: Weigh
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
