"""Settings of the Transformer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict
from shared.tasks.settings import BorrowedConfig, Routes, StudyConfig


class PositionsConfig(Strict):
    """How the order of symbols is told (section 3.5); ``count`` is how many learned positions there are."""

    kind: Literal["sinusoidal", "learned", "none"]
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
    positions: PositionsConfig = PositionsConfig(kind="sinusoidal")
    scaled: bool = True

    @model_validator(mode="after")
    def _divisible(self) -> ModelConfig:
        if None in (self.d_k, self.d_v) and self.d_model % self.h:
            raise ValueError(f"d_model ({self.d_model}) is not a multiple of h ({self.h}); give d_k and d_v")
        return self


KIND = "translation"


class ComplexityConfig(StudyConfig):
    """The ``model`` section of the study of table 1; it has no settings."""

    measured = ("*.operations_*", "*.path_*", "*.sequential_*")


ROUTES: Routes = {"paper": BorrowedConfig, "study": {"complexity": ComplexityConfig}}
