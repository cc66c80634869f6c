"""The settings of a variant that captions images: tasks of ``kind: captioning``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from shared.data.tokenizers import TokenizerConfig
from shared.metrics.captioning import Metric, Tokenisation
from shared.tasks.settings import CorpusConfig, ExampleTraining, JudgingConfig, RunConfig, Shown
from shared.training.config import PerLabelOrSentence
from shared.vision.settings import EncoderConfig


class CaptionCorpusConfig(CorpusConfig):
    """Which images a task describes, as which features, and in which symbols.

    Attributes:
        max_words: longer training captions are left out
        images: split to how many, its first ones, are used
    """

    reads = ("captions",)
    limits = "images"
    encoder: EncoderConfig
    tokenizer: TokenizerConfig
    max_words: int | None = Field(default=None, ge=1)
    images: dict[str, PositiveInt] = Field(default={})

    @model_validator(mode="after")
    def _consistent(self) -> CaptionCorpusConfig:
        if self.tokenizer.joint:
            raise ValueError("captions are of one language; leave out tokenizer.joint")
        return self


class CaptioningTraining(ExampleTraining, PerLabelOrSentence):
    """How a captioning model is trained.

    Attributes:
        monitor: what of validation decides which weights are best
    """

    monitor: Literal["bleu", "loss"] = "bleu"


class CaptioningEvaluation(JudgingConfig, Shown):
    """How a trained model's captions are searched for and judged.

    Attributes:
        heatmaps: images of each test split whose attention is kept for figures
        beam: 1: greedy search
        normalisation: what ranks the captions of a beam: their log-probability, or its mean per symbol
        longest: most symbols of a caption, its end symbol included
        tokenisation: ptb: captions and references are running text; needs Java
        batch: images captioned together
    """

    heatmaps: int = Field(default=6, ge=0)
    beam: int = Field(default=1, ge=1)
    normalisation: Literal["none", "mean"] = "none"
    longest: int = Field(default=30, ge=1)
    metrics: list[Metric] = Field(default=["bleu", "rouge_l", "cider"], min_length=1)
    tokenisation: Tokenisation = "none"
    batch: int = Field(default=100, ge=1)


class CaptioningRun(RunConfig):
    """A variant's settings."""

    kind: Literal["captioning"] = "captioning"
    corpus: CaptionCorpusConfig
    training: CaptioningTraining
    evaluation: CaptioningEvaluation = CaptioningEvaluation()


RUN = CaptioningRun
"""What checks the settings of a variant of this kind."""
