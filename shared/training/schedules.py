"""Optimisers and learning-rate schedules, budgeted in updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from shared.config import Strict
from shared.training.rmsprop import CenteredRmsprop


class AdadeltaConfig(Strict):
    """Adadelta (Zeiler 2012), which Bahdanau et al. use with ρ = 0.95 and ε = 1e-6 (appendix B.2)."""

    name: Literal["adadelta"]
    learning_rate: float = Field(default=1.0, gt=0)
    rho: float = Field(default=0.95, gt=0, lt=1)
    epsilon: float = Field(default=1e-6, gt=0)


class _Decaying(Strict):
    """L2 regularisation as in PyTorch: after clipping, the gradient of ``weight_decay``/2 · ‖θ‖² is added."""

    weight_decay: float = Field(default=0.0, ge=0)


class AdamConfig(_Decaying):
    """Adam (Kingma & Ba 2015)."""

    name: Literal["adam"]
    learning_rate: float = Field(gt=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-8, gt=0)
    decoupled: bool = Field(default=False, description="weights shrink by learning_rate · weight_decay instead")


class RadamConfig(_Decaying):
    """RAdam (Liu et al. 2020), which is plain momentum until the variance of Adam's step can be estimated."""

    name: Literal["radam"]
    learning_rate: float = Field(gt=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-8, gt=0)
    decoupled: bool = Field(
        default=False, description="weights shrink by learning_rate · weight_decay instead, as in their code"
    )


class AdagradConfig(_Decaying):
    """AdaGrad (Duchi et al. 2011), which Lin et al. (2017) use with a learning rate of 0.01 (section 4.3)."""

    name: Literal["adagrad"]
    learning_rate: float = Field(gt=0)
    epsilon: float = Field(default=1e-10, gt=0)


class RmspropConfig(Strict):
    """Centred RMSProp (Graves 2013, section 4.2), which Xu et al. (2015) use on Flickr8k; with their code's values."""

    name: Literal["rmsprop"]
    learning_rate: float = Field(default=1e-4, gt=0)
    decay: float = Field(default=0.95, ge=0, lt=1)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    epsilon: float = Field(default=1e-4, gt=0, description="added to the variance, under the root")


class SgdConfig(_Decaying):
    """Plain stochastic gradient descent, which Luong et al. (2015) use with a learning rate of 1 (section 4.1)."""

    name: Literal["sgd"]
    learning_rate: float = Field(gt=0)


OptimizerConfig = Annotated[
    AdadeltaConfig | AdagradConfig | AdamConfig | RadamConfig | RmspropConfig | SgdConfig,
    Field(discriminator="name"),
]


class ScheduleConfig(Strict):
    """How the learning rate changes with the update number u.

    ``constant``: after the warm-up it stays. ``cosine``: it falls to zero at the last update. ``noam``: it falls as
    1/√u (Vaswani et al. 2017, section 5.3). ``halving``: after ``hold`` updates it is halved, and again after every
    further ``every`` updates (Luong et al. 2015, section 4.1, with an epoch for ``every``). ``drop``: after ``hold``
    updates it is multiplied by ``factor``, once (Katharopoulos et al. 2020, section 4.1.1). The warm-up is linear.
    """

    name: Literal["constant", "cosine", "noam", "halving", "drop"] = "constant"
    warmup: int = Field(default=0, ge=0)
    hold: int | None = Field(default=None, ge=0)
    every: int | None = Field(default=None, ge=1)
    factor: float | None = Field(default=None, gt=0, lt=1)

    @model_validator(mode="after")
    def _knows_when_and_by_how_much(self) -> ScheduleConfig:
        needed = {"halving": {"hold", "every"}, "drop": {"hold", "factor"}}.get(self.name, set())
        given = {name for name in ("hold", "every", "factor") if getattr(self, name) is not None}
        if given != needed:
            raise ValueError("halving needs hold and every, drop hold and factor, and no other schedule has them")
        return self


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
