"""Settings of the Performer, of what it is compared with, and of the studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from shared.config import Ascending
from shared.errors import ReplicationError
from shared.tasks.sequences.settings import ScalingConfig, SequenceRun
from shared.tasks.settings import Routes, StudyConfig, TransformerSizes


class ModelConfig(TransformerSizes):
    """Sizes of a model.

    Attributes:
        attention: exact softmax attention; ReLU features, the paper's Performer-ReLU as its code has it by default;
            or one of the estimators of softmax attention.
        dropout: of embeddings, attention and feed-forward networks.
        features: projections m of the estimators.
        directions: of these projections.
        redraw_every: updates of training from one drawing of them to the next; null: drawn once.
        swap_at: the update until which attention is exact, whatever ``attention`` says.
    """

    attention: Literal["softmax", "relu", "positive", "hyperbolic", "trigonometric"]
    dropout: float = Field(default=0.0, ge=0, lt=1)
    features: PositiveInt = 256
    directions: Literal["orthogonal", "iid", "uncorrected"] = "orthogonal"
    redraw_every: PositiveInt | None = 1
    swap_at: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _sinusoids_fit(self) -> ModelConfig:
        if self.width % 2:
            raise ValueError(f"width ({self.width}) must be even: sinusoids come in pairs")
        return self


def suits(section: ModelConfig, run: SequenceRun, where: str) -> None:
    """Refuse a Transformer that never becomes a Performer.

    Raises:
        ReplicationError: attention is swapped when training is over.
    """
    if section.swap_at is not None and section.swap_at >= run.training.updates:
        raise ReplicationError(
            f"{where}: swap_at {section.swap_at} is not before the last of {run.training.updates} updates; lower it, "
            "or leave it out."
        )


EXACT: Mapping[str, Any] = {"attention": "softmax"}


class DepthConfig(StudyConfig):
    """A variant's ``model`` section.

    Attributes:
        network: settings of the network but for its attention, layers and features, which are varied here.
        depths: every l, ascending.
        projections: every P, ascending.
        draws: N, each with weights, symbols and projections of its own.
        sequences: B.
        length: T.
        symbols: of the vocabulary.
        causal: whether a position sees those up to it only.
    """

    measured = ("features_*.*", "most_over_fewest.*")
    network: dict[str, Any] = Field(default={"heads": 4, "width": 64, "hidden": 256})
    depths: Ascending = Field(default=[1, 2, 3, 4, 6, 8, 12])
    projections: Ascending = Field(default=[16, 64, 256])
    draws: int = Field(default=10, ge=2)
    sequences: PositiveInt = 1
    length: PositiveInt = 256
    symbols: PositiveInt = 24
    causal: bool = False

    def of(self, attention: Mapping[str, Any], layers: int) -> dict[str, Any]:
        """The settings of a network of so many layers."""
        return {**self.network, **attention, "layers": layers}

    def favor(self) -> list[dict[str, Any]]:
        """Settings of attention through random features, for every P."""
        return [{"attention": "positive", "directions": "orthogonal", "features": count} for count in self.projections]

    def networks(self) -> Iterator[dict[str, Any]]:
        """Networks of one layer, of every kind of attention."""
        for attention in (EXACT, *self.favor()):
            yield self.of(attention, 1)


Angle = Annotated[int, Field(gt=0, lt=180)]
Name = Annotated[str, Field(pattern=r"^[a-z]+$")]


class KernelsConfig(StudyConfig):
    """A variant's ``model`` section.

    Attributes:
        key_size: K; 16 in figure 4.
        norm: ‖x‖ = ‖y‖ of the kernel exp(xᵀy). At 0.7 squared errors of 100,000 draws have a mean that can be trusted;
            at 2 they are so heavy-tailed that no number of draws would do.
        angles: between x and y, degrees. At 0 trigonometric features have no error, and at 180 positive ones.
        kernel_projections: P of the kernel's estimates.
        draws: N of the kernel's estimates.
        length: L of the attention; 4,096 in figure 4.
        projections: every P of the attention.
        samples: N of the attention, each with queries, keys and values of its own; 15 in figure 4.
        inputs: standard deviations of queries and keys, by a name. What the paper has, "appropriately normalized", it
            does not say, and much depends on it.
    """

    measured = ("positive_*", "trigonometric_*", "hyperbolic_*", "orthogonal_*")
    key_size: int = Field(default=16, ge=2)
    norm: PositiveFloat = 0.7
    angles: list[Angle] = Field(default=[30, 60, 90, 120, 150], min_length=1)
    kernel_projections: PositiveInt = 16
    draws: int = Field(default=100_000, ge=2)
    length: PositiveInt = 4096
    projections: list[PositiveInt] = Field(default=[16, 32, 64, 128, 256], min_length=1)
    samples: int = Field(default=15, ge=2)
    inputs: dict[Name, PositiveFloat] = Field(default={"small": 0.5, "large": 1.0}, min_length=1)

    @model_validator(mode="after")
    def _whole_blocks(self) -> KernelsConfig:
        if self.kernel_projections % self.key_size:
            raise ValueError(
                f"kernel_projections ({self.kernel_projections}) must be a multiple of key_size ({self.key_size})"
            )
        return self


KIND = "sequences"
ROUTES: Routes = {"study": {"scaling": ScalingConfig, "kernels": KernelsConfig, "depth": DepthConfig}}
