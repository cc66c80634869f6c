"""The settings of a variant that classifies texts: tasks of ``kind: classification``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.tasks.classification.corpus import ClassifiedCorpusConfig
from shared.tasks.settings import JudgingConfig, RunConfig


class ClassificationEvaluation(JudgingConfig):
    """How a trained classifier is judged."""

    longest_shown: int = Field(default=60, ge=6, description="symbols of the texts that are kept for figures")
    deletion: float | None = Field(
        default=0.1, gt=0, lt=1, description="share of a text's words that the deletion test takes out; null: no test"
    )
    deletion_draws: int = Field(
        default=3, ge=1, description="choices of random words that the test compares with, on average"
    )
    batch: int = Field(default=64, ge=1, description="texts read together")


class ClassificationRun(RunConfig):
    """A variant's settings."""

    kind: Literal["classification"] = "classification"
    corpus: ClassifiedCorpusConfig
    evaluation: ClassificationEvaluation = ClassificationEvaluation()

    @model_validator(mode="after")
    def _loss_is_of_texts(self) -> ClassificationRun:
        if "loss_per" in self.training.model_fields_set:
            raise ValueError("the loss of a classifier is the mean over texts; leave out training.loss_per")
        return self

    @model_validator(mode="after")
    def _texts_are_cut(self) -> ClassificationRun:
        if self.training.max_words is not None:
            raise ValueError("no text is left out for its length; in place of training.max_words use corpus.max_tokens")
        return self


RUN = ClassificationRun
"""What :func:`shared.tasks.kinds.settings_of` finds."""
