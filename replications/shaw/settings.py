"""Settings of the paper's models."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from shared.tasks.settings import TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        clip: k, the distance from which on all have one vector; null: self-attention knows no distances.
        on_keys: whether a^K is there (equation 4).
        on_values: whether a^V is there (equation 3).
        absolute: whether sinusoids are added to embeddings.
        dropout: on sub-layers and embeddings.
    """

    pairs = True
    clip: NonNegativeInt | None
    on_keys: bool = True
    on_values: bool = True
    absolute: bool = False
    dropout: float = Field(default=0.0, ge=0, lt=1)


KIND = "translation"
