"""The settings of a variant that translates: tasks of ``kind: translation``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict
from shared.data.tokenizers import TokenizerConfig
from shared.tasks.settings import CorpusConfig, ExampleTraining, JudgingConfig, RunConfig, Shown
from shared.training.config import PerLabelOrSentence, Smoothed


class ParallelCorpusConfig(CorpusConfig):
    """Which parallel text a task uses, and as which symbols.

    Attributes:
        max_words: longer training pairs are dropped, either side
        max_ratio: training pairs of more unequal length are dropped
        train_pairs: use only so many training pairs
        dictionary: learn one, to replace unknown words by
    """

    source: str
    target: str
    tokenizer: TokenizerConfig
    max_words: int = Field(default=10_000, ge=1)
    max_ratio: float = Field(default=9.0, gt=1)
    train_pairs: int | None = Field(default=None, ge=1)
    dictionary: bool = False

    @model_validator(mode="after")
    def _words_to_look_up(self) -> ParallelCorpusConfig:
        if self.dictionary and self.tokenizer.kind != "words":
            raise ValueError("a dictionary is of words, and this tokenizer's are pieces; leave it out")
        return self


class TranslationTraining(ExampleTraining, Smoothed, PerLabelOrSentence):
    """How a translation model is trained.

    Attributes:
        max_words: longer training pairs are left out
    """

    max_words: int | None = Field(default=None, ge=1)


class DecodingConfig(Strict):
    """How translations are searched for.

    Attributes:
        minimum_ratio: least symbols per source symbol, rounded down
        maximum_ratio: most symbols per source symbol
        maximum_extra: symbols more than that; source and translation both count their end symbol
        batch: sources searched together
        no_unknown: also translate with UNK forbidden, for the no-UNK column
        replace_unknown: also put translations of the words most attended to in the place of UNK
    """

    beam: int = Field(ge=1)
    normalisation: Literal["none", "mean", "gnmt"] = "none"
    alpha: float = Field(default=0.6, ge=0)
    minimum_ratio: float = Field(default=0.5, ge=0)
    maximum_ratio: float = Field(default=3.0, gt=0)
    maximum_extra: int = Field(default=0, ge=0)
    batch: int = Field(default=64, ge=1)
    no_unknown: bool = False
    replace_unknown: bool = False

    @model_validator(mode="after")
    def _some_length_is_allowed(self) -> DecodingConfig:
        if self.minimum_ratio > self.maximum_ratio:
            raise ValueError("minimum_ratio may not exceed maximum_ratio, or no translation is allowed to end")
        return self


class EvaluationConfig(JudgingConfig, Shown):
    """How a trained model's translations are judged.

    Attributes:
        bleu: sacreBLEU's tokenisation
        moses: also BLEU of Moses' words, of this target language
        compounds: also that BLEU with compounds split at hyphens, as tensor2tensor has it
        brackets: targets are trees; also score their labelled brackets
        operations: also count the operations of the whole training
        ensemble: also judge the models of all seeds together as one
    """

    bleu: Literal["13a", "none"] = "13a"
    moses: str | None = Field(default=None, pattern="^[a-z]{2}$")
    compounds: bool = False
    brackets: bool = False
    operations: bool = False
    ensemble: bool = False

    @model_validator(mode="after")
    def _compounds_of_words(self) -> EvaluationConfig:
        if self.compounds and self.moses is None:
            raise ValueError("compounds needs moses, the language whose words are split")
        return self


class TranslationRun(RunConfig):
    """A variant's settings."""

    kind: Literal["translation"] = "translation"
    corpus: ParallelCorpusConfig
    training: TranslationTraining
    decoding: DecodingConfig
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _possible(self) -> TranslationRun:
        if self.evaluation.ensemble and len(self.seeds) < 2:
            raise ValueError("evaluation.ensemble needs at least two seeds")
        if self.decoding.replace_unknown and self.corpus.tokenizer.kind != "words":
            raise ValueError("decoding.replace_unknown needs a tokenizer of kind 'words'; pieces know every word")
        return self


RUN = TranslationRun
"""What checks the settings of a variant of this kind."""
