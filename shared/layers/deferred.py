"""A weight that a step loop uses again and again, whose gradient is one product over all steps.

Autograd over a loop makes a weight-sized gradient at every step and adds them up. Here a step only keeps its input and
the gradient of its output, and when the last step is done one product makes the weight's gradient of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from shared.layers.gated_recurrence import product_dtype


class DeferredWeight:
    """``x @ weight`` for every step of one loop, and one backward pass through it.

    Autocast does not reach into the loop, whose products are too small to gain from it, only to the gradient.

    Args:
        weight: (I, O).
    """

    def __init__(self, weight: Tensor) -> None:
        # The graph refers to the steps, not to this object, which refers to the graph; so there is no reference cycle.
        self._steps = _Steps(product_dtype(weight.device.type, weight.dtype))
        self._weight: Tensor = _AllSteps.apply(weight, self._steps)  # type: ignore[no-untyped-call]

    def product(self, x: Tensor) -> Tensor:
        """One step: (B, I) to (B, O)."""
        steps = self._steps if torch.is_grad_enabled() and self._weight.requires_grad else None
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self._weight.dtype)
            y: Tensor = _OneStep.apply(x, self._weight, steps)  # type: ignore[no-untyped-call]
        return y


class _Steps:
    """What the steps leave for the weight's gradient, which is made in the type ``product``."""

    def __init__(self, product: torch.dtype) -> None:
        self.inputs: list[Tensor] = []
        self.gradients: dict[int, Tensor] = {}
        self.product = product

    def keep(self, x: Tensor) -> int:
        """Remember a step's input (B, I); returns the step's number."""
        self.inputs.append(x.detach())
        return len(self.inputs) - 1

    def gradient(self) -> Tensor | None:
        """Of the weight, from the steps that the loss depends on; their memory is given back."""
        steps = sorted(self.gradients)
        if not steps:
            return None
        inputs = torch.cat([self.inputs[step] for step in steps])  # (T·B, I)
        gradients = torch.cat([self.gradients[step] for step in steps])  # (T·B, O)
        self.inputs.clear()
        self.gradients.clear()
        return (inputs.to(self.product).t() @ gradients.to(self.product)).to(inputs.dtype)


class _AllSteps(torch.autograd.Function):
    """The weight itself; its backward pass comes when those of all steps have been."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, steps: _Steps) -> Tensor:
        ctx.steps = steps
        ctx.set_materialize_grads(False)  # no step sends a gradient along the graph
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, None]:
        return ctx.steps.gradient(), None


class _OneStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, steps: _Steps | None) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.steps = steps
        ctx.step = None if steps is None else steps.keep(x)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (d_y,), (weight,) = gradients, ctx.saved_tensors
        if ctx.steps is not None:
            ctx.steps.gradients[ctx.step] = d_y
        return d_y @ weight.t(), None, None
