"""The settings of a variant that models separate sequences: tasks of ``kind: sequences``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, model_validator

from shared.config import Strict
from shared.tasks.sequences.corpus import SequenceCorpusConfig
from shared.tasks.sequences.pixels import PixelCorpusConfig
from shared.tasks.sequences.proteins import ProteinCorpusConfig
from shared.tasks.settings import JudgingConfig, RunConfig
from shared.training.config import TrainingConfig


class PicturesConfig(Strict):
    """Which pictures the model draws, for the reader of the report."""

    samples: PositiveInt = Field(default=8, description="drawn after the first pixel of test pictures")
    completions: PositiveInt = Field(default=4, description="test pictures of which a part is given")
    given: float = Field(default=0.5, gt=0, lt=1, description="that part, of their pixels, from the top")


class SequenceEvaluation(JudgingConfig):
    """How a trained model is judged: by all symbols of the test splits that count."""

    tokens: PositiveInt = Field(default=4000, description="symbols that are read together, padding included")
    swapped: dict[Annotated[str, Field(pattern=r"^\w[\w-]*$")], dict[str, Any]] = Field(
        default={},
        description="by name, changes of the model section: the weights are judged again in a model that is built so",
    )
    pictures: PicturesConfig | None = None
    baseline: bool = Field(
        default=False, description="also judge the frequencies of the letters in train, as a predictor"
    )

    @model_validator(mode="after")
    def _no_heatmaps(self) -> SequenceEvaluation:
        if "heatmaps" in self.model_fields_set:
            raise ValueError("the report of a model of sequences shows no attention; leave out heatmaps")
        return self


class SequenceRun(RunConfig):
    """A variant's settings."""

    kind: Literal["sequences"] = "sequences"
    corpus: SequenceCorpusConfig
    evaluation: SequenceEvaluation = SequenceEvaluation()

    @model_validator(mode="after")
    def _evaluation_suits_the_corpus(self) -> SequenceRun:
        if self.evaluation.pictures is not None and not isinstance(self.corpus, PixelCorpusConfig):
            raise ValueError("only models of pixels draw pictures; leave out evaluation.pictures")
        if self.evaluation.swapped and not self.corpus.counts_hits:
            raise ValueError("no claim is on pixels in a swapped model; leave out evaluation.swapped")
        if self.evaluation.baseline and not isinstance(self.corpus, ProteinCorpusConfig):
            raise ValueError("only proteins have letters with frequencies; leave out evaluation.baseline")
        return self

    @model_validator(mode="after")
    def _every_symbol_counts_alike(self) -> SequenceRun:
        for name in ("label_smoothing", "smoothing_over", "loss_per", "max_words"):
            if getattr(self.training, name) != TrainingConfig.model_fields[name].default:
                raise ValueError(
                    f"the loss of a model of sequences is the mean over all that count; leave out training.{name}"
                )
        return self


RUN = SequenceRun
"""What :func:`shared.tasks.kinds.settings_of` finds."""
