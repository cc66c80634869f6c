"""The settings of a variant that models a language: tasks of ``kind: language``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from shared.config import Strict
from shared.data.tokenizers import CharactersConfig, SentencePieceConfig, WordVocabularyConfig
from shared.tasks.settings import CorpusConfig, JudgingConfig, RunConfig
from shared.training.config import TrainingConfig

if TYPE_CHECKING:
    from shared.decoding.protocol import Reach

Unit = Literal["word", "character", "byte"]
_OWN_UNIT: dict[str, Unit] = {"words": "word", "characters": "character", "bytes": "byte"}


class LanguageCorpusConfig(CorpusConfig):
    """Which running text a task models, and as which symbols.

    Attributes:
        language: the text is in <split>.<language>
        unit: what losses are reported per; symbols may be others
        end_of_line: an end symbol for each line end, which counts as a unit; else it is nothing
        recalls: language of the words that repeat an earlier one of their line, and of which
        lines: split to how many, its first ones, are used
        shuffled: lines stand in a random order, which no seed changes, and empty ones are left out
    """

    limits = "lines"
    language: str = "text"
    unit: Unit = "word"
    tokenizer: Annotated[WordVocabularyConfig | SentencePieceConfig | CharactersConfig, Field(discriminator="kind")]
    end_of_line: bool = True
    recalls: str | None = None
    lines: dict[str, PositiveInt] = Field(default={})
    shuffled: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> LanguageCorpusConfig:
        kind = self.tokenizer.kind
        if not isinstance(self.tokenizer, CharactersConfig) and self.tokenizer.joint:
            raise ValueError("the text is of one language; leave out tokenizer.joint")
        if self.unit != _OWN_UNIT.get(kind, self.unit):
            raise ValueError(f"a tokenizer of kind {kind} has the unit {_OWN_UNIT[kind]}, not {self.unit}")
        split_at_spaces = isinstance(self.tokenizer, WordVocabularyConfig) and self.tokenizer.split == "space"
        if self.recalls is not None and not split_at_spaces:
            raise ValueError("recalls count the words between spaces; use a tokenizer of words, split: space")
        if self.recalls is not None and self.shuffled:
            raise ValueError("recalls are of the lines in the order of the text; leave out 'shuffled'")
        return self


class SegmentsConfig(Strict):
    """The size of a batch: parts of the text that are read side by side, a segment of each.

    Attributes:
        sentences: parts of the text, its columns
        length: symbols of a segment
    """

    sentences: PositiveInt
    length: PositiveInt


class LanguageTraining(TrainingConfig):
    """How a language model is trained: segment after segment of the text, its loss the mean over symbols.

    Attributes:
        memory: symbols before a segment whose states are remembered
        loss_on: which symbols of a segment are trained on
    """

    batch: SegmentsConfig
    memory: NonNegativeInt = 0
    loss_on: Literal["all", "last_half"] = "all"


class ReachConfig(Strict):
    """How far back a model sees, as :class:`shared.decoding.protocol.Reach` has it.

    Attributes:
        memory: M, symbols; 0: segments are read independently
        same_length: every symbol is predicted from exactly M others
        clamp: greater distances count as this one
    """

    memory: NonNegativeInt
    same_length: bool = False
    clamp: PositiveInt | None = None

    @property
    def reach(self) -> Reach:
        """The value that models take."""
        from shared.decoding.protocol import Reach  # torch

        return Reach(self.memory, self.same_length, self.clamp)

    @model_validator(mode="after")
    def _something_of_that_length(self) -> ReachConfig:
        if self.same_length and not self.memory:
            raise ValueError("same_length needs a memory greater than 0")
        return self


class SlidingConfig(Strict):
    """Evaluation in overlapping windows that are read independently, as Al-Rfou et al. (2019) do it.

    Attributes:
        context: inputs of a window
        stride: symbols between the beginnings of windows; only what is new is scored
        size: windows read together
    """

    context: PositiveInt
    stride: PositiveInt = 1
    size: PositiveInt = 64

    @model_validator(mode="after")
    def _no_symbol_is_skipped(self) -> SlidingConfig:
        if self.stride > self.context:
            raise ValueError(f"stride ({self.stride}) must not exceed context ({self.context})")
        return self


class ContextsConfig(Strict):
    """At which lengths of the context losses are taken, for the relative effective context length (section 4.3).

    Attributes:
        step: Δ, symbols from one length to the next
        most: the greatest length, symbols
        positions: test symbols, evenly spread, whose losses these are
        of: whether they are any symbols or only such that repeat an earlier one
    """

    step: PositiveInt
    most: PositiveInt
    positions: PositiveInt
    of: Literal["all", "recalls"] = "all"

    @model_validator(mode="after")
    def _in_steps(self) -> ContextsConfig:
        if self.most % self.step:
            raise ValueError(f"most ({self.most}) must be a multiple of step ({self.step})")
        return self


class SampleConfig(Strict):
    """Which text the model writes, for the reader of the report.

    Attributes:
        prompts: texts that begin with a part of the test text
        prompt: symbols of that part
        length: symbols that the model adds
    """

    prompts: PositiveInt = 2
    prompt: PositiveInt = 100
    length: PositiveInt = 300
    temperature: float = Field(default=1.0, gt=0)
    top_k: PositiveInt | None = None
    top_p: float | None = Field(default=None, gt=0, le=1)


class LanguageEvaluation(JudgingConfig):
    """How a trained language model is judged: by all symbols of the test splits, in the order of the text.

    Attributes:
        length: symbols of a segment
        columns: parts of the text that are read side by side
        block: symbols that count as one example of the test text
        sliding: windows instead of segments, for a model that is trained without memory
        memories: further lengths of the memory at which the first test split is scored
    """

    length: PositiveInt
    reach: ReachConfig
    columns: PositiveInt = 8
    block: PositiveInt = 200
    sliding: SlidingConfig | None = None
    memories: list[NonNegativeInt] = Field(default=[])
    contexts: ContextsConfig | None = None
    samples: SampleConfig | None = None

    @model_validator(mode="after")
    def _windows_have_no_memory(self) -> LanguageEvaluation:
        if self.sliding is not None and self.reach.memory:
            raise ValueError("sliding windows are read independently; set reach.memory to 0")
        if self.reach.same_length and 0 in self.memories:
            raise ValueError("same_length needs memories greater than 0")
        return self


class LanguageRun(RunConfig):
    """A variant's settings."""

    kind: Literal["language"] = "language"
    corpus: LanguageCorpusConfig
    training: LanguageTraining
    evaluation: LanguageEvaluation

    @model_validator(mode="after")
    def _recalls_are_known(self) -> LanguageRun:
        contexts = self.evaluation.contexts
        if contexts is not None and contexts.of == "recalls" and self.corpus.recalls is None:
            raise ValueError("evaluation.contexts is of recalls, so corpus.recalls must name their file")
        return self


RUN = LanguageRun
"""What checks the settings of a variant of this kind."""
