"""Optimisers and learning-rate schedules, budgeted in updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from shared.training.config import OptimizerConfig, ScheduleConfig


def build_optimizer(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> Optimizer:
    """The optimiser of a run; fused where PyTorch has it, since small models spend their time on many small tensors."""
    rate = config.learning_rate
    if config.name == "adadelta":
        return torch.optim.Adadelta(parameters, lr=rate, rho=config.rho, eps=config.epsilon)
    if config.name == "rmsprop":
        settings = {"decay": config.decay, "momentum": config.momentum, "epsilon": config.epsilon}
        return CenteredRmsprop(parameters, {"lr": rate} | settings)
    decay = config.weight_decay
    if config.name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, fused=True)
    if config.name == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate, eps=config.epsilon, weight_decay=decay, fused=True)
    adam: dict[str, Any] = {
        "lr": rate, "betas": (config.beta1, config.beta2), "eps": config.epsilon, "weight_decay": decay,
        "decoupled_weight_decay": config.decoupled,
    }  # fmt: skip
    if config.name == "radam":
        return torch.optim.RAdam(parameters, **adam)
    return torch.optim.Adam(parameters, **adam, fused=True)


def learning_rate_factor(config: ScheduleConfig, *, updates: int) -> Callable[[int], float]:
    """From the number of updates made, of ``updates``, to the factor on the learning rate; 1 at its peak."""

    def factor(made: int) -> float:
        u, warmup = made + 1, max(1, config.warmup)
        if u < warmup:
            return u / warmup
        if config.name == "cosine":
            return 0.5 * (1 + math.cos(math.pi * min(1.0, (u - warmup) / max(1, updates - warmup))))
        if config.name == "noam":
            return math.sqrt(warmup / u)
        if config.hold is not None and made >= config.hold:
            return config.factor or 0.5 ** (1 + (made - config.hold) // (config.every or 1))
        return 1.0

    return factor


class CenteredRmsprop(Optimizer):
    """RMSProp with the variance of the gradient (Graves 2013, equations 38 to 41).

    n ← ρ n + (1 − ρ) g², m ← ρ m + (1 − ρ) g, Δ ← μ Δ − η g / √(n − m² + ε), θ ← θ + Δ. PyTorch's own adds ε after the
    root has been taken: with this ε, steps would be up to a hundred times as long where gradients are small, and where
    rounding leaves n − m² below zero they would be NaN.

    Its defaults are ``lr``, η; ``decay``, ρ; ``momentum``, μ; and ``epsilon``, ε.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Make one update."""
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
