"""Optimisers and learning-rate schedules, budgeted in updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from shared.training.config import (
    AdadeltaConfig,
    AdagradConfig,
    OptimizerConfig,
    RadamConfig,
    RmspropConfig,
    ScheduleConfig,
    SgdConfig,
)
from shared.training.rmsprop import CenteredRmsprop


def build_optimizer(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> Optimizer:
    """The optimiser of a run; fused where PyTorch has it, since small models spend their time on many small tensors."""
    rate = config.learning_rate
    if isinstance(config, AdadeltaConfig):
        return torch.optim.Adadelta(parameters, lr=rate, rho=config.rho, eps=config.epsilon)
    if isinstance(config, RmspropConfig):
        return CenteredRmsprop(parameters, rate, decay=config.decay, momentum=config.momentum, epsilon=config.epsilon)
    decay = config.weight_decay
    if isinstance(config, SgdConfig):
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, fused=True)
    if isinstance(config, AdagradConfig):
        return torch.optim.Adagrad(parameters, lr=rate, eps=config.epsilon, weight_decay=decay, fused=True)
    betas = (config.beta1, config.beta2)
    if isinstance(config, RadamConfig):
        return torch.optim.RAdam(
            parameters, lr=rate, betas=betas, eps=config.epsilon, weight_decay=decay,
            decoupled_weight_decay=config.decoupled,
        )  # fmt: skip
    return torch.optim.Adam(
        parameters, lr=rate, betas=betas, eps=config.epsilon, weight_decay=decay,
        decoupled_weight_decay=config.decoupled, fused=True,
    )  # fmt: skip


def build_schedule(optimizer: Optimizer, config: ScheduleConfig, *, updates: int) -> LambdaLR:
    """The schedule over ``updates`` updates, to be stepped after each."""
    return LambdaLR(optimizer, learning_rate_factor(config, updates=updates))


def learning_rate_factor(config: ScheduleConfig, *, updates: int) -> Callable[[int], float]:
    """From the number of updates made to the factor on the learning rate; 1 at its peak."""

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


def optimizer_bundle(
    parameters: Iterable[nn.Parameter], optimizer: OptimizerConfig, schedule: ScheduleConfig, updates: int
) -> Any:
    """What Lightning's ``configure_optimizers`` returns; the schedule is stepped every update."""
    built = build_optimizer(parameters, optimizer)
    return {
        "optimizer": built,
        "lr_scheduler": {"scheduler": build_schedule(built, schedule, updates=updates), "interval": "step"},
    }
