"""One variant's settings as checked values, as far as those of every kind of task are alike.

Each kind has a module of its own, such as :mod:`shared.tasks.translation.settings`, so that a paper depends on the code
of its own kind alone. To import this is to import torch: :mod:`shared.pipeline.config` waits.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from shared.config import ConfigT, Strict, build
from shared.training.config import TrainingConfig


class JudgingConfig(Strict):
    """How a trained model is judged."""

    checkpoint: Literal["best", "last", "average"] = "best"
    heatmaps: int = Field(default=4, ge=0, description="test texts whose attention is kept for figures")


class RunConfig(Strict):
    """Everything that one variant's runs depend on, all seeds. Every kind says more of corpus and evaluation.

    Attributes:
        segments: whether models of the kind are trained on segments of running text.
    """

    segments: ClassVar[bool] = False
    kind: str
    task: str
    corpus: Strict
    model: dict[str, Any]
    training: TrainingConfig
    evaluation: JudgingConfig
    seeds: list[int] = Field(min_length=1)

    @property
    def has_ensemble(self) -> bool:
        """Whether the models of all seeds are also judged together, as one."""
        return False

    @model_validator(mode="after")
    def _an_average_to_judge(self) -> RunConfig:
        if self.evaluation.checkpoint == "average" and self.training.average is None:
            raise ValueError("evaluation.checkpoint 'average' needs training.average")
        return self

    @model_validator(mode="after")
    def _segments_are_of_running_text(self) -> RunConfig:
        if self.training.batch.length is not None and not self.segments:
            raise ValueError("only language models read segments of running text; leave out training.batch.length")
        return self

    def checked_model(self, kind: type[ConfigT]) -> ConfigT:
        """The ``model`` section as the settings of one kind of model.

        Raises:
            ReplicationError: it does not fit.
        """
        return build(kind, self.model, where=f"the model section of task '{self.task}'")


RunT = TypeVar("RunT", bound=RunConfig)
