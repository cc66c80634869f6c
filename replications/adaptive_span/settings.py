"""Settings of the paper's models, and of counting what a span costs."""

from __future__ import annotations

from pydantic import Field, PositiveInt, model_validator

from shared.tasks.settings import HeadSizes, Routes, StudyConfig, TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        limit: how many symbols a head can look back at (the paper's S).
        ramp: R, over which a head's mask falls from 1 to 0; null: spans are not learned, all heads look at `limit`.
        penalty: λ, the coefficient of the mean span of a layer's heads in the loss.
        dropout: of attention's weights and inside of the feed-forward networks.
    """

    limit: PositiveInt
    ramp: PositiveInt | None
    penalty: float = Field(default=0.0, ge=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _spans_are_learned(self) -> ModelConfig:
        if self.penalty and self.ramp is None:
            raise ValueError("without a ramp no span is learned, so there is nothing to penalise; leave out 'penalty'")
        return self


class CostConfig(StudyConfig, HeadSizes):
    """The `model` section of the study that counts operations.

    Attributes:
        spans: of all heads of a layer, symbols.
        limit: how many symbols a head could look back at.
    """

    measured = ("operations@*", "operations", "span_*", "span@*", "heads_*", "cached")
    spans: list[PositiveInt] = Field(min_length=2)
    limit: PositiveInt


KIND = "language"
ROUTES: Routes = {"study": {"cost": CostConfig}}
