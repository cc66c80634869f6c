"""Feature maps φ, with which attention is linear: the weight of a key is φ(q)ᵀ φ(k) (Katharopoulos et al. 2020).

Random ones, whose products estimate a kernel, are in :mod:`shared.attention.favor`.

Shape letters: T positions, K width of queries and keys, C features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Features(NamedTuple):
    """Features of keys, values · exp(log_scale), as linear attention takes them.

    Attributes:
        values: (…, T, C).
        log_scale: (…, T), the logarithm of what a position's features were divided by so that none overflows; -∞ at
            padding; None where they were not divided. It is a constant: no gradient flows into it, and none is needed,
            because the division treats it as a constant, too.
    """

    values: Tensor
    log_scale: Tensor | None = None

    def masked(self, mask: Tensor | None) -> Features:
        """Set the features of padding to zero, so that padding contributes to neither the sums nor the normaliser.

        Args:
            mask: bool, broadcastable to (…, T), true at symbols, false at padding; None if there is no padding.
        """
        if mask is None:
            return self
        log_scale = None if self.log_scale is None else self.log_scale.masked_fill(~mask, -torch.inf)
        return Features(self.values.masked_fill(~mask.unsqueeze(-1), 0), log_scale)


class FeatureMap(nn.Module, ABC):
    """φ: R^K → R^C of queries and of keys.

    A map may scale the features of each query freely, because the factor cancels in the normalisation. The factor of a
    key does not cancel, so :meth:`keys` returns its logarithm.
    """

    @abstractmethod
    def size(self, key_size: int) -> int:
        """C for queries and keys of the width K."""

    @abstractmethod
    def queries(self, x: Tensor) -> Tensor:
        """(…, T, K) to φ (…, T, C), up to a factor per position that does not depend on other positions."""

    @abstractmethod
    def keys(self, x: Tensor, mask: Tensor | None = None) -> Features:
        """(…, T, K) to φ (…, T, C) of every key; zero where ``mask``, broadcastable to (…, T), is false."""

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw random projections anew; deterministic maps, the default, do nothing."""


class ExactMap(FeatureMap):
    """A map that is the same for queries and keys, and needs no scale."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """(…, K) to φ (…, C)."""

    def size(self, key_size: int) -> int:
        """C = K."""
        return key_size

    def queries(self, x: Tensor) -> Tensor:
        """See :class:`FeatureMap`."""
        values: Tensor = self(x)
        return values

    def keys(self, x: Tensor, mask: Tensor | None = None) -> Features:
        """See :class:`FeatureMap`."""
        return Features(self(x)).masked(mask)


class EluPlusOne(ExactMap):
    """elu(x) + 1 (Katharopoulos et al. 2020, equation 7).

    It is computed as x + 1 or exp(x), because in float32 the sum of elu(x) and 1 is rounded to zero at x = -17. Below
    x = -87 exp(x) itself loses digits in float32, and below -103 it is 0: a query or key all of whose projections are
    so low has wrong weights or none.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(…, K) to (…, K)."""
        values: Tensor = _EluPlusOne.apply(x)  # type: ignore[no-untyped-call]
        return values


class _EluPlusOne(torch.autograd.Function):
    """Saves only its result for the backward pass, since the gradient is min(φ(x), 1)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.clamp(max=0).exp_().add_(x.relu())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        slope: Tensor = y.clamp(max=1)
        return slope.mul_(gradient)


class ReLU(ExactMap):
    """max(x, 0) + ε: the generalized attention of Choromanski et al. (2021) as their code has it by default.

    Args:
        epsilon: ε; without it a query may find no weight at any key, and then attention gives zero.
    """

    def __init__(self, epsilon: float = 1e-3) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """(…, K) to (…, K)."""
        return x.relu() + self.epsilon
