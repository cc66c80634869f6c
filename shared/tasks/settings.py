"""One variant's settings as checked values, as far as those of every kind of task are alike.

Each kind has a module of its own, such as :mod:`shared.tasks.translation.settings`, which composes its sections from
what is here and in :mod:`shared.training.config`. None of them imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from shared.config import ConfigT, Strict, build
from shared.training.config import Batched, TrainingConfig


class CorpusConfig(Strict):
    """Which data set a task is of, and on which of its splits models are judged."""

    dataset: str = Field(description="a card of data/, without .yaml")
    test: list[str] = Field(default=["test"], min_length=1, description="splits that models are judged on")

    @property
    def splits(self) -> list[str]:
        """All splits of the task."""
        return ["train", "valid", *self.test]

    @model_validator(mode="after")
    def _the_report_is_of_the_first(self) -> CorpusConfig:
        if self.test[0] != "test":
            raise ValueError("the first of 'test' must be the split 'test', which the report is of")
        if len(set(self.splits)) < len(self.splits):
            raise ValueError("'test' must name every split once, and neither 'train' nor 'valid'")
        return self

    def _limits(self, name: str) -> None:
        """Refuse a field ``name``, a mapping of split to a limit, that names an unknown split."""
        if unknown := sorted({*getattr(self, name)} - {*self.splits}):
            raise ValueError(f"'{name}' limits {', '.join(unknown)}, but the splits are {', '.join(self.splits)}")


class JudgingConfig(Strict):
    """Which weights are judged."""

    checkpoint: Literal["best", "last", "average"] = Field(default="best", description="which weights are judged")


class Shown(Strict):
    """How much attention is kept for the report."""

    heatmaps: int = Field(default=4, ge=0, description="test texts whose attention is kept for figures")


class ExampleTraining(TrainingConfig, Batched):
    """Training on separate examples."""


class Place(NamedTuple):
    """Where a variant's settings stand.

    Attributes:
        file: the YAML file of the variant.
        variant: its name.
        inherited: keys of the ``model`` section that come from the task and not from the variant itself.
    """

    file: str
    variant: str
    inherited: frozenset[str]


class RunConfig(Strict):
    """All settings of a variant's runs. Each kind of task narrows the types of corpus and evaluation."""

    kind: str
    task: str
    corpus: CorpusConfig
    model: dict[str, Any]
    training: TrainingConfig
    evaluation: JudgingConfig
    seeds: list[int] = Field(min_length=1)
    _place: Place | None = PrivateAttr(default=None)

    @property
    def has_ensemble(self) -> bool:
        """Whether the models of all seeds are also judged together, as one."""
        return False

    @model_validator(mode="after")
    def _an_average_to_judge(self) -> RunConfig:
        if self.evaluation.checkpoint == "average" and self.training.average is None:
            raise ValueError("evaluation.checkpoint 'average' needs training.average")
        return self

    def at(self, file: str, variant: str, model: Mapping[str, Any] | None = None) -> Self:
        """Return the same settings, with the file and the variant that error messages name.

        Args:
            file: the YAML file of the variant.
            variant: its name.
            model: the ``model`` section that the variant itself writes. Messages say of all other keys of
                ``self.model`` that they come from the task. By default every key is the variant's.
        """
        copy = self.model_copy()
        copy._place = Place(file, variant, frozenset(self.model.keys() - (self.model if model is None else model)))
        return copy

    @property
    def where(self) -> str:
        """The model section's file and key, for messages."""
        if self._place is None:
            return f"the model section of task '{self.task}'"
        return f"{self._place.file}: variants.{self._place.variant}.model"

    @property
    def own_model(self) -> Mapping[str, Any]:
        """What the variant itself says of its model, without the defaults of its task."""
        inherited = () if self._place is None else self._place.inherited
        return {key: value for key, value in self.model.items() if key not in inherited}

    def with_model(self, model: Mapping[str, Any]) -> Self:
        """The same variant, in the same place, with another model section."""
        return self.model_copy(update={"model": dict(model)})

    def model_sections(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every ``model`` section that the variant builds networks of, after its place for messages."""
        yield self.where, self.model

    def checked_model(self, kind: type[ConfigT]) -> ConfigT:
        """The ``model`` section as the settings of one kind of model.

        Raises:
            ReplicationError: it does not fit.
        """
        return build(kind, self.model, where=self.where)


class ExampleRun(RunConfig):
    """A variant that is trained on separate examples."""

    training: ExampleTraining


RunT = TypeVar("RunT", bound=RunConfig)
