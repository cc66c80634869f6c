"""The settings of a variant that classifies texts: tasks of ``kind: classification``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from shared.data.tokenizers import TokenizerConfig
from shared.errors import ReplicationError
from shared.tasks.settings import CorpusConfig, ExampleTraining, JudgingConfig, RunConfig, Shown
from shared.training.config import Smoothed


class ClassifiedCorpusConfig(CorpusConfig):
    """Which texts a task classifies, as which symbols and into which classes.

    Attributes:
        texts: one language, or the two of a pair
        evidence: language of positions (from 0) of the words that decide the class
        classes: in this order; default: those of the training texts, sorted
        lower: lower-case before the tokeniser
        max_tokens: texts are cut after so many symbols
        train_texts: use only so many, chosen at random once
        unit: what a cross-entropy is per.
    """

    unit: ClassVar[str] = "text"
    texts: list[str] = Field(default=["text"], min_length=1, max_length=2)
    label: str = "label"
    evidence: str | None = None
    classes: list[str] | None = Field(default=None, min_length=2)
    tokenizer: TokenizerConfig
    lower: bool = False
    max_tokens: int | None = Field(default=None, ge=1)
    train_texts: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _consistent(self) -> ClassifiedCorpusConfig:
        if self.classes is not None and len(set(self.classes)) < len(self.classes):
            raise ValueError("a class is listed twice")
        if self.tokenizer.joint:
            raise ValueError("one tokeniser serves all texts anyway; leave out tokenizer.joint")
        words = self.tokenizer.kind == "words" and self.tokenizer.split == "space"
        if self.evidence is not None and not (words and len(self.texts) == 1):
            raise ValueError(
                "evidence counts the words between the spaces of one text; "
                "use a tokenizer of kind words with split: space, and one text"
            )
        return self


class ClassificationTraining(ExampleTraining, Smoothed):
    """How a classifier is trained: its loss is the mean over texts.

    Attributes:
        monitor: what of validation decides which weights are best
    """

    monitor: Literal["error", "loss"] = "error"


class ClassificationEvaluation(JudgingConfig, Shown):
    """How a trained classifier is judged.

    Attributes:
        longest_shown: symbols of the texts that are kept for figures
        deletion: share of a text's words that the deletion test takes out; null: no test
        deletion_draws: choices of random words that the test compares with, on average
        batch: texts read together
    """

    longest_shown: int = Field(default=60, ge=6)
    deletion: float | None = Field(default=0.1, gt=0, lt=1)
    deletion_draws: int = Field(default=3, ge=1)
    batch: int = Field(default=64, ge=1)


class ClassificationRun(RunConfig):
    """A variant's settings."""

    kind: Literal["classification"] = "classification"
    corpus: ClassifiedCorpusConfig
    training: ClassificationTraining
    evaluation: ClassificationEvaluation = ClassificationEvaluation()


def check_texts(run: ClassificationRun, where: str, *, pairs: bool) -> None:
    """Refuse a corpus whose texts are not those that a model reads: the two of a pair, or one.

    Raises:
        ReplicationError: names the setting, after the place ``where``.
    """
    if pairs != (len(run.corpus.texts) == 2):
        raise ReplicationError(
            f"{where}: the model reads {'two texts' if pairs else 'one text'} at once, but its corpus has "
            f"{len(run.corpus.texts)}; change the model section or corpus.texts."
        )


RUN = ClassificationRun
"""What checks the settings of a variant of this kind."""
