"""Settings of the paper's models."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from shared.config import Strict
from shared.tasks.settings import Routes


class ModelConfig(Strict):
    """Sizes of a model.

    Attributes:
        layers, heads, width, hidden: N, H, D and the width of the feed-forward networks.
        clip: k, the distance from which on all have one vector; null: self-attention knows no distances.
        on_keys: whether a^K is there (equation 4).
        on_values: whether a^V is there (equation 3).
        absolute: whether sinusoids are added to embeddings.
        dropout: on sub-layers and embeddings.
    """

    layers: PositiveInt
    heads: PositiveInt
    width: PositiveInt
    hidden: PositiveInt
    clip: NonNegativeInt | None
    on_keys: bool = True
    on_values: bool = True
    absolute: bool = False
    dropout: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _heads_fit(self) -> ModelConfig:
        if self.width % (2 * self.heads):
            raise ValueError(f"width ({self.width}) must be a multiple of twice the heads ({self.heads})")
        return self


KIND = "translation"
MODEL = ModelConfig
ROUTES: Routes = {}
