"""How a run is trained, as checked values: small mixins, of which each kind of task composes its section ``training``.

Nothing here imports torch, so that all settings of a paper can be checked before it is.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from shared.config import Strict

Smoothing = Literal["all", "others"]
"""Which symbols the mass ε is spread over: all V, as in PyTorch, or the V - 1 that are not the label, as in the code of
Vaswani et al. (2017). PAD also receives its share of ε, although labels equal to PAD are ignored."""


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
    """Adam (Kingma & Ba 2015), or RAdam (Liu et al. 2020), which is plain momentum until the variance of Adam's step
    can be estimated.

    Attributes:
        decoupled: weights shrink by learning_rate · weight_decay instead, as in RAdam's code
    """

    name: Literal["adam", "radam"]
    learning_rate: float = Field(gt=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    epsilon: float = Field(default=1e-8, gt=0)
    decoupled: bool = False


class AdagradConfig(_Decaying):
    """AdaGrad (Duchi et al. 2011), which Lin et al. (2017) use with a learning rate of 0.01 (section 4.3)."""

    name: Literal["adagrad"]
    learning_rate: float = Field(gt=0)
    epsilon: float = Field(default=1e-10, gt=0)


class RmspropConfig(Strict):
    """Centred RMSProp (Graves 2013, section 4.2), which Xu et al. (2015) use on Flickr8k.

    Attributes:
        epsilon: added to the variance, under the root
    """

    name: Literal["rmsprop"]
    learning_rate: float = Field(default=1e-4, gt=0)
    decay: float = Field(default=0.95, ge=0, lt=1)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    epsilon: float = Field(default=1e-4, gt=0)


class SgdConfig(_Decaying):
    """Plain stochastic gradient descent, which Luong et al. (2015) use with a learning rate of 1 (section 4.1)."""

    name: Literal["sgd"]
    learning_rate: float = Field(gt=0)


OptimizerConfig = Annotated[
    AdadeltaConfig | AdagradConfig | AdamConfig | RmspropConfig | SgdConfig, Field(discriminator="name")
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


class AverageConfig(Strict):
    """Of which weights a mean is made at the end: the last, and those every so many updates before.

    Attributes:
        last: how many
        every: updates
    """

    last: int = Field(ge=1)
    every: int = Field(ge=1)


class TrainingConfig(Strict):
    """What :func:`shared.training.run.train_run` and every training module read; the kinds of task add theirs.

    Attributes:
        clip: the gradient's L2 norm is scaled down to this; null leaves it as it is
        clip_without_embeddings: that norm leaves the embeddings' gradients out; all gradients are scaled
        precision: auto: bf16-mixed on a GPU that has it, 32-true on all else
        accumulate: batches that make one update, as if they were one
        may_diverge: a gradient that is not finite ends the run where it is; otherwise it is a mistake to be corrected
        validate_every: updates
        patience: validations without improvement before stopping
    """

    optimizer: OptimizerConfig
    schedule: ScheduleConfig = ScheduleConfig()
    clip: float | None = Field(default=1.0, gt=0)
    clip_without_embeddings: bool = False
    precision: Literal["32-true", "bf16-mixed", "auto"] = "32-true"
    accumulate: int = Field(default=1, ge=1)
    average: AverageConfig | None = None
    may_diverge: bool = False
    updates: int = Field(ge=1)
    validate_every: int = Field(ge=1)
    patience: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _what_fits_into_the_updates(self) -> TrainingConfig:
        if self.validate_every > self.updates:
            raise ValueError(f"validate_every ({self.validate_every}) must not exceed updates ({self.updates})")
        if self.average is None:
            return self
        span = self.average.last * self.average.every
        if span > self.updates:
            raise ValueError(f"average.last times average.every ({span}) must not exceed updates ({self.updates})")
        if self.patience is not None or self.may_diverge:
            raise ValueError("average needs a run that makes all its updates; leave out patience and may_diverge")
        return self


class BatchConfig(Strict):
    """The size of a batch of separate examples: a budget of ``tokens`` on their first axis, padding included, or a
    number of ``sentences``, which may be texts, captions or sequences.

    Attributes:
        pool: batches' worth of examples that are sorted by length together
        equal_lengths: all examples of a batch are of exactly one length; the pool is the epoch
    """

    tokens: int | None = Field(default=None, ge=1)
    sentences: int | None = Field(default=None, ge=1)
    pool: int = Field(default=400, ge=1)
    equal_lengths: bool = False

    @model_validator(mode="after")
    def _one_of_two(self) -> BatchConfig:
        if (self.tokens is None) == (self.sentences is None):
            raise ValueError("give either tokens or sentences")
        return self


class Batched(Strict):
    """Batches of separate examples of similar length."""

    batch: BatchConfig


class Smoothed(Strict):
    """Label smoothing (Szegedy et al. 2016)."""

    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    smoothing_over: Smoothing = "all"


class PerLabelOrSentence(Strict):
    """What the loss of a batch is a mean over.

    Attributes:
        loss_per: what the summed loss of a batch is divided by the number of
    """

    loss_per: Literal["label", "sentence"] = "label"
