"""Binds the Transformer to the pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from torch import nn

from replications.transformer.complexity import ComplexityStudy
from replications.transformer.model import Transformer
from shared.config import Strict
from shared.errors import ReplicationError
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from shared.tasks.routed import Routed
from shared.tasks.studies import study_route
from shared.tasks.translation.borrowed import borrowed_route
from shared.tasks.translation.task import Translation


class PositionsConfig(Strict):
    """How the order of symbols is told (section 3.5); ``count`` is how many learned positions there are."""

    kind: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    count: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _count_of_learned(self) -> PositionsConfig:
        if (self.kind == "learned") != (self.count is not None):
            raise ValueError("learned positions need a count, and no others have one")
        return self


class ModelConfig(Strict):
    """Sizes by the names of table 3; ``d_k`` and ``d_v`` are ``d_model / h`` unless given."""

    N: int = Field(ge=1)
    d_model: int = Field(ge=2, multiple_of=2)
    d_ff: int = Field(ge=1)
    h: int = Field(ge=1)
    d_k: int | None = Field(default=None, ge=1)
    d_v: int | None = Field(default=None, ge=1)
    p_drop: float = Field(ge=0, lt=1)
    positions: PositionsConfig = PositionsConfig()
    scaled: bool = True

    @model_validator(mode="after")
    def _divisible(self) -> ModelConfig:
        if None in (self.d_k, self.d_v) and self.d_model % self.h:
            raise ValueError(f"d_model ({self.d_model}) is not a multiple of h ({self.h}); give d_k and d_v")
        return self


def build_model(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> Transformer:
    """The untrained model of a variant.

    Raises:
        ReplicationError: source and target have different vocabularies, so cannot share a matrix.
    """
    if source_vocabulary != target_vocabulary:
        raise ReplicationError(
            "the Transformer shares one embedding matrix between source and target; add 'joint: true' to the "
            "corpus' tokenizer."
        )
    return Transformer(
        vocabulary=target_vocabulary, width=config.d_model, layers=config.N, heads=config.h,
        key_size=config.d_k or config.d_model // config.h, value_size=config.d_v or config.d_model // config.h,
        hidden_size=config.d_ff, dropout=config.p_drop, positions=_positions(config), scaled=config.scaled,
    )  # fmt: skip


def _positions(config: ModelConfig) -> nn.Module:
    if config.positions.count is not None:
        return LearnedPositions(count=config.positions.count, width=config.d_model)
    return SinusoidalPositions(width=config.d_model) if config.positions.kind == "sinusoidal" else NoPositions()


TRANSLATION = Translation(model_config=ModelConfig, build_model=build_model)
REPLICATION = Routed(
    TRANSLATION,
    routes={"paper": borrowed_route, "study": study_route({"complexity": ComplexityStudy()})},
)
