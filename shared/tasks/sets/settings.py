"""The settings of a variant that reads sets of vectors: tasks of ``kind: sets``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from shared.data.generated.words import Lengths
from shared.tasks.settings import CorpusConfig, ExampleTraining, JudgingConfig, RunConfig

Asked = Literal["number", "count", "mixture"]
"""What a model says of a set: a number, with the least absolute error; a count, by the rate of a Poisson distribution;
or a mixture of Gaussians, from which the elements of the set are likely to be drawn."""


class SetCorpusConfig(CorpusConfig):
    """Which sets a task is of, and what is to be said of each.

    Attributes:
        numbers: of an element
        sizes: least and largest number of elements of a set
        components: Gaussians of a mixture
        composed: the elements are labelled pictures, as texts of grey levels from 0, and so many sets are composed of
            those of each split; of a set the number of different labels is to be said
        levels: grey levels of these pictures
    """

    asked: Asked
    numbers: PositiveInt
    sizes: Lengths
    components: PositiveInt = 1
    composed: dict[str, PositiveInt] = Field(default={})
    levels: int = Field(default=4, ge=2)

    @model_validator(mode="after")
    def _consistent(self) -> SetCorpusConfig:
        if self.composed and self.composed.keys() != {*self.splits}:
            raise ValueError(f"'composed' must have a number for each of {', '.join(self.splits)}")
        if self.composed and self.asked != "count":
            raise ValueError("labels of pictures are counted; set 'asked' to count, or leave out 'composed'")
        if self.asked != "mixture" and self.components > 1:
            raise ValueError("only a mixture has components; leave them out")
        return self

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        """Languages that a data set must have, if sets are composed of it."""
        return ("text", "label") if self.composed else ()

    @property
    def outputs(self) -> tuple[int, int]:
        """How many vectors a model makes of a set, and how many numbers each has; of a Gaussian 1 + 2 for each axis."""
        return (self.components, 1 + 2 * self.numbers) if self.asked == "mixture" else (1, 1)

    @property
    def unit(self) -> str:
        """What a loss is per."""
        return "point" if self.asked == "mixture" else "set"


class SetEvaluation(JudgingConfig):
    """How a trained model is judged.

    Attributes:
        shown: test sets that are kept for figures, with their mixtures
        batch: sets read together
    """

    shown: int = Field(default=4, ge=0)
    batch: PositiveInt = 50


class SetRun(RunConfig):
    """A variant's settings."""

    kind: Literal["sets"] = "sets"
    corpus: SetCorpusConfig
    training: ExampleTraining
    evaluation: SetEvaluation = SetEvaluation()


RUN = SetRun
"""What checks the settings of a variant of this kind."""
