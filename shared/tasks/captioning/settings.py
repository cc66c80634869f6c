"""The settings of a variant that captions images: tasks of ``kind: captioning``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.metrics.captioning import Metric, Tokenisation
from shared.tasks.captioning.corpus import CaptionCorpusConfig
from shared.tasks.settings import JudgingConfig, RunConfig


class CaptioningEvaluation(JudgingConfig):
    """How a trained model's captions are searched for and judged."""

    heatmaps: int = Field(default=6, ge=0, description="images of each test split whose attention is kept for figures")
    beam: int = Field(default=1, ge=1, description="1: greedy search")
    normalisation: Literal["none", "mean"] = Field(
        default="none", description="what ranks the captions of a beam: their log-probability, or its mean per symbol"
    )
    longest: int = Field(default=30, ge=1, description="most symbols of a caption, its end symbol included")
    metrics: list[Metric] = Field(default=["bleu", "rouge_l", "cider"], min_length=1)
    tokenisation: Tokenisation = Field(
        default="none", description="ptb: captions and references are running text; needs Java"
    )
    batch: int = Field(default=100, ge=1, description="images captioned together")


class CaptioningRun(RunConfig):
    """A variant's settings."""

    kind: Literal["captioning"] = "captioning"
    corpus: CaptionCorpusConfig
    evaluation: CaptioningEvaluation = CaptioningEvaluation()

    @model_validator(mode="after")
    def _lengths_are_of_the_corpus(self) -> CaptioningRun:
        if self.training.max_words is not None:
            raise ValueError("in place of training.max_words use corpus.max_words")
        return self


RUN = CaptioningRun
"""What :func:`shared.tasks.kinds.settings_of` finds."""
