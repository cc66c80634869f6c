"""The settings of a variant that models a language: tasks of ``kind: language``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from shared.attention.memory import Reach
from shared.config import Strict
from shared.tasks.language.corpus import LanguageCorpusConfig
from shared.tasks.settings import JudgingConfig, RunConfig
from shared.training.config import TrainingConfig


class ReachConfig(Strict):
    """How far back a model sees, as :class:`shared.attention.memory.Reach` has it."""

    memory: NonNegativeInt = Field(description="M, symbols; 0: segments are read independently")
    same_length: bool = Field(default=False, description="every symbol is predicted from exactly M others")
    clamp: PositiveInt | None = Field(default=None, description="greater distances count as this one")

    @property
    def reach(self) -> Reach:
        """The value that models take."""
        return Reach(self.memory, self.same_length, self.clamp)

    @model_validator(mode="after")
    def _something_of_that_length(self) -> ReachConfig:
        if self.same_length and not self.memory:
            raise ValueError("same_length needs a memory greater than 0")
        return self


class SlidingConfig(Strict):
    """Evaluation in overlapping windows that are read independently, as Al-Rfou et al. (2019) do it."""

    context: PositiveInt = Field(description="inputs of a window")
    stride: PositiveInt = Field(
        default=1, description="symbols between the beginnings of windows; only what is new is scored"
    )
    size: PositiveInt = Field(default=64, description="windows read together")

    @model_validator(mode="after")
    def _no_symbol_is_skipped(self) -> SlidingConfig:
        if self.stride > self.context:
            raise ValueError(f"stride ({self.stride}) must not exceed context ({self.context})")
        return self


class ContextsConfig(Strict):
    """At which lengths of the context losses are taken, for the relative effective context length (section 4.3)."""

    step: PositiveInt = Field(description="Δ, symbols from one length to the next")
    most: PositiveInt = Field(description="the greatest length, symbols")
    positions: PositiveInt = Field(description="test symbols, evenly spread, whose losses these are")
    of: Literal["all", "recalls"] = Field(
        default="all", description="whether they are any symbols or only such that repeat an earlier one"
    )

    @model_validator(mode="after")
    def _in_steps(self) -> ContextsConfig:
        if self.most % self.step:
            raise ValueError(f"most ({self.most}) must be a multiple of step ({self.step})")
        return self


class SampleConfig(Strict):
    """Which text the model writes, for the reader of the report."""

    prompts: PositiveInt = Field(default=2, description="texts that begin with a part of the test text")
    prompt: PositiveInt = Field(default=100, description="symbols of that part")
    length: PositiveInt = Field(default=300, description="symbols that the model adds")
    temperature: float = Field(default=1.0, gt=0)
    top_k: PositiveInt | None = None
    top_p: float | None = Field(default=None, gt=0, le=1)


class LanguageEvaluation(JudgingConfig):
    """How a trained language model is judged: by all symbols of the test splits, in the order of the text."""

    length: PositiveInt = Field(description="symbols of a segment")
    reach: ReachConfig
    columns: PositiveInt = Field(default=8, description="parts of the text that are read side by side")
    block: PositiveInt = Field(default=200, description="symbols that count as one example of the test text")
    sliding: SlidingConfig | None = Field(
        default=None, description="windows instead of segments, for a model that is trained without memory"
    )
    memories: list[NonNegativeInt] = Field(
        default=[], description="further lengths of the memory at which the first test split is scored"
    )
    contexts: ContextsConfig | None = None
    samples: SampleConfig | None = None

    @model_validator(mode="after")
    def _windows_have_no_memory(self) -> LanguageEvaluation:
        if self.sliding is not None and self.reach.memory:
            raise ValueError("sliding windows are read independently; set reach.memory to 0")
        if self.reach.same_length and 0 in self.memories:
            raise ValueError("same_length needs memories greater than 0")
        return self

    @model_validator(mode="after")
    def _no_heatmaps(self) -> LanguageEvaluation:
        if "heatmaps" in self.model_fields_set:
            raise ValueError("the report of a language model shows no attention; leave out heatmaps")
        return self


class LanguageRun(RunConfig):
    """A variant's settings."""

    segments: ClassVar[bool] = True
    kind: Literal["language"] = "language"
    corpus: LanguageCorpusConfig
    evaluation: LanguageEvaluation

    @model_validator(mode="after")
    def _trained_in_segments(self) -> LanguageRun:
        batch = self.training.batch
        if batch.sentences is None or batch.length is None:
            raise ValueError(
                "a language model reads training.batch.sentences parts of the text side by side, in segments of "
                "training.batch.length symbols; give both"
            )
        if unused := sorted({"pool", "equal_lengths"} & batch.model_fields_set):
            raise ValueError(f"running text is not sorted by length; leave out training.batch.{unused[0]}")
        return self

    @model_validator(mode="after")
    def _recalls_are_known(self) -> LanguageRun:
        contexts = self.evaluation.contexts
        if contexts is not None and contexts.of == "recalls" and self.corpus.recalls is None:
            raise ValueError("evaluation.contexts is of recalls, so corpus.recalls must name their file")
        return self

    @model_validator(mode="after")
    def _every_symbol_counts_alike(self) -> LanguageRun:
        for name in ("label_smoothing", "smoothing_over", "loss_per", "max_words"):
            if getattr(self.training, name) != TrainingConfig.model_fields[name].default:
                raise ValueError(
                    f"the loss of a language model is the mean over all symbols; leave out training.{name}"
                )
        return self


RUN = LanguageRun
"""What :func:`shared.tasks.kinds.settings_of` finds."""
