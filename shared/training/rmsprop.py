"""RMSProp as the code of Xu et al. (2015) has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim import Optimizer


class CenteredRmsprop(Optimizer):
    """RMSProp with the variance of the gradient (Graves 2013, equations 38 to 41).

    n ← ρ n + (1 − ρ) g², m ← ρ m + (1 − ρ) g, Δ ← μ Δ − η g / √(n − m² + ε), θ ← θ + Δ. PyTorch's own adds ε after the
    root has been taken: with this ε, steps would be up to a hundred times as long where gradients are small, and where
    rounding leaves n − m² below zero they would be NaN.

    Args:
        parameters: of the model.
        lr: η.
        decay: ρ.
        momentum: μ.
        epsilon: ε.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, *, decay: float, momentum: float, epsilon: float
    ) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay, "momentum": momentum, "epsilon": epsilon})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make one update, after evaluating ``closure`` if there is one; returns what that gives."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            decay = group["decay"]
            for parameter in group["params"]:
                if (gradient := parameter.grad) is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state.update({name: torch.zeros_like(parameter) for name in ("square", "mean", "change")})
                square, mean, change = state["square"], state["mean"], state["change"]
                square.mul_(decay).addcmul_(gradient, gradient, value=1 - decay)
                mean.lerp_(gradient, 1 - decay)
                variance = square.addcmul(mean, mean, value=-1).clamp_(min=0)
                deviation = variance.add_(group["epsilon"]).sqrt_()
                change.mul_(group["momentum"]).addcdiv_(gradient, deviation, value=-group["lr"])
                parameter.add_(change)
        return loss
