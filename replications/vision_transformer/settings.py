"""Settings of the paper's models and of their rival."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from shared.errors import ReplicationError
from shared.tasks.classification.settings import ClassificationRun, check_texts
from shared.tasks.settings import TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        network: the Vision Transformer, or the convolutional network that it is compared with.
        side: S, pixels of a picture's side.
        patch: P, pixels of a patch's side.
        places: a vector for each patch's place, one for its row beside one for its column, or nothing.
        class_token: whether the class is read from a token of its own, or from the mean of all patches.
        features, stages, groups: of the convolutional network: features of the first stage, which each further one
            doubles; how many stages; groups of its norms.
        dropout: of either.
    """

    pairs = True
    network: Literal["transformer", "convolution"] = "transformer"
    side: PositiveInt
    patch: PositiveInt
    places: Literal["1-D", "2-D", "none"] = "1-D"
    class_token: bool = True
    features: PositiveInt
    stages: PositiveInt
    groups: PositiveInt
    dropout: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _sizes_fit(self) -> ModelConfig:
        if self.side % self.patch:
            raise ValueError(f"side ({self.side}) must be a multiple of patch ({self.patch})")
        if self.features % self.groups:
            raise ValueError(f"features ({self.features}) must be a multiple of groups ({self.groups})")
        return self


def suits(section: ModelConfig, run: ClassificationRun, where: str) -> None:
    """Refuse texts that are no pictures of the model's size.

    Raises:
        ReplicationError: names the setting.
    """
    check_texts(run, where, pairs=False)
    if run.corpus.max_tokens != section.side**2:
        raise ReplicationError(
            f"{where}: side {section.side} makes {section.side**2} pixels, and corpus.max_tokens is "
            f"{run.corpus.max_tokens}; let them agree."
        )


KIND = "classification"
