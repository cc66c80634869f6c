"""How a run is trained, as checked values."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, model_validator

from shared.config import Strict
from shared.training.loss import Smoothing
from shared.training.schedules import OptimizerConfig, ScheduleConfig


class BatchConfig(Strict):
    """The size of a batch: a budget of tokens, padding included, of the target or the (first) text; or a number of
    sentences or texts; or, for language models, of columns of running text, ``sentences``, and their ``length``."""

    tokens: int | None = Field(default=None, ge=1)
    sentences: int | None = Field(default=None, ge=1)
    length: int | None = Field(default=None, ge=1, description="symbols of a segment of running text")
    pool: int = Field(default=400, ge=1, description="batches' worth of examples that are sorted by length together")
    equal_lengths: bool = Field(
        default=False, description="all examples of a batch are of exactly one length; the pool is the epoch"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> BatchConfig:
        if (self.tokens is None) == (self.sentences is None):
            raise ValueError("give either tokens or sentences")
        if self.length is not None and self.sentences is None:
            raise ValueError("length is of columns of running text; give their number as sentences, not tokens")
        return self


class AverageConfig(Strict):
    """Of which weights a mean is made at the end: the last, and those every so many updates before."""

    last: int = Field(ge=1, description="how many")
    every: int = Field(ge=1, description="updates")


class TrainingConfig(Strict):
    """One run of training, budgeted in updates."""

    updates: int = Field(ge=1)
    batch: BatchConfig
    optimizer: OptimizerConfig
    schedule: ScheduleConfig = ScheduleConfig()
    clip: float | None = Field(
        default=1.0, gt=0, description="the gradient's L2 norm is scaled down to this; null leaves it as it is"
    )
    clip_without_embeddings: bool = Field(
        default=False, description="that norm leaves the embeddings' gradients out; all gradients are scaled"
    )
    loss_per: Literal["label", "sentence"] = Field(
        default="label", description="what the summed loss of a batch is divided by the number of"
    )
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    smoothing_over: Smoothing = "all"
    precision: Literal["32-true", "bf16-mixed", "auto"] = "32-true"
    loss_on: Literal["all", "last_half"] = Field(
        default="all", description="which symbols of a segment of running text are trained on"
    )
    memory: int = Field(
        default=0, ge=0, description="symbols before a segment of running text whose states are remembered"
    )
    max_words: int | None = Field(default=None, ge=1, description="longer training pairs are left out")
    validate_every: int = Field(ge=1, description="updates")
    patience: int | None = Field(default=None, ge=1, description="validations without improvement before stopping")
    accumulate: int = Field(default=1, ge=1, description="batches whose gradients, of equal weight, make one update")
    average: AverageConfig | None = None
    may_diverge: bool = Field(
        default=False,
        description="a gradient that is not finite ends the run where it is; otherwise it is a mistake to be corrected",
    )
    monitor: Literal["loss", "error", "bleu"] | None = Field(
        default=None, description="what of validation decides which weights are best; null: what the kind of task takes"
    )

    @model_validator(mode="after")
    def _validates_at_least_once(self) -> TrainingConfig:
        if self.validate_every > self.updates:
            raise ValueError(f"validate_every ({self.validate_every}) must not exceed updates ({self.updates})")
        return self

    @model_validator(mode="after")
    def _segments_of_running_text(self) -> TrainingConfig:
        if self.batch.length is None and (self.memory or self.loss_on != "all"):
            raise ValueError("memory and loss_on are of segments of running text; give batch.length as well")
        return self

    @model_validator(mode="after")
    def _an_average_of_what_is_trained(self) -> TrainingConfig:
        if self.average is None:
            return self
        span = self.average.last * self.average.every
        if span > self.updates:
            raise ValueError(f"average.last times average.every ({span}) must not exceed updates ({self.updates})")
        if self.patience is not None or self.may_diverge:
            raise ValueError("average needs a run that makes all its updates; leave out patience and may_diverge")
        return self


def resolve_precision(wanted: str) -> Literal["32-true", "bf16-mixed"]:
    """``auto`` is ``bf16-mixed`` where the processor multiplies bfloat16 itself; elsewhere that would be slower."""
    if wanted != "auto":
        return "bf16-mixed" if wanted == "bf16-mixed" else "32-true"
    if torch.cuda.is_available():
        return "bf16-mixed" if torch.cuda.is_bf16_supported() else "32-true"
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return "bf16-mixed" if supported() else "32-true"
