"""Binds the Performer and the Transformer that it is compared with to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from replications.performer.depth import Depth
from replications.performer.kernels import Kernels
from replications.performer.model import Performer
from shared.attention.favor import Directions, SoftmaxFeatures
from shared.attention.feature_maps import FeatureMap, ReLU
from shared.config import Strict, build
from shared.errors import ReplicationError
from shared.tasks.routed import Routed
from shared.tasks.sequences.scaling_study import ATTENTION, Scaling
from shared.tasks.sequences.settings import SequenceRun
from shared.tasks.sequences.task import Sequences
from shared.tasks.studies import study_route


class ModelConfig(Strict):
    """Sizes of a model.

    Attributes:
        attention: exact softmax attention; ReLU features, the paper's Performer-ReLU as its code has it by default;
            or one of the estimators of softmax attention.
        layers, heads, width, hidden: layers, heads, D, and d_ff.
        dropout: of embeddings, attention and feed-forward networks.
        features: projections m of the estimators.
        directions: of these projections.
        redraw_every: updates of training from one drawing of them to the next; null: drawn once.
        swap_at: the update until which attention is exact, whatever ``attention`` says.
    """

    attention: Literal["softmax", "relu", "positive", "hyperbolic", "trigonometric"]
    layers: PositiveInt
    heads: PositiveInt
    width: PositiveInt
    hidden: PositiveInt
    dropout: float = Field(default=0.0, ge=0, lt=1)
    features: PositiveInt = 256
    directions: Directions = "orthogonal"
    redraw_every: PositiveInt | None = 1
    swap_at: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _heads_of_one_width(self) -> ModelConfig:
        if self.width % self.heads:
            raise ValueError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        if self.width % 2:
            raise ValueError(f"width ({self.width}) must be even: sinusoids come in pairs")
        return self


def build_model(config: ModelConfig, vocabulary: int, causal: bool) -> Performer:
    """The untrained model of a variant."""

    def features() -> FeatureMap | None:
        if config.attention == "softmax":
            return None
        if config.attention == "relu":
            return ReLU()
        return SoftmaxFeatures(
            key_size=config.width // config.heads, projections=config.features, estimator=config.attention,
            directions=config.directions,
        )  # fmt: skip

    return Performer(
        symbols=vocabulary, width=config.width, heads=config.heads, hidden_size=config.hidden, layers=config.layers,
        features=features, causal=causal, dropout=config.dropout, redraw_every=config.redraw_every,
        swap_at=config.swap_at,
    )  # fmt: skip


def suits(section: ModelConfig, run: SequenceRun) -> None:
    """Refuse a Transformer that never becomes a Performer.

    Raises:
        ReplicationError: attention is swapped when training is over.
    """
    if section.swap_at is not None and section.swap_at >= run.training.updates:
        raise ReplicationError(
            f"the model section of task '{run.task}': swap_at {section.swap_at} is not before the last of "
            f"{run.training.updates} updates; lower it, or leave it out."
        )


NETWORKS = Sequences(model_config=ModelConfig, build_model=build_model, suits=suits)


def _build(section: Mapping[str, Any], vocabulary: int, causal: bool) -> Performer:
    """The untrained model of a ``model`` section, for studies."""
    return build_model(build(ModelConfig, section, where="the network of a study"), vocabulary, causal)


STUDIES = {"scaling": Scaling(ATTENTION), "kernels": Kernels(), "depth": Depth(_build)}
REPLICATION = Routed(NETWORKS, routes={"study": study_route(STUDIES, ModelConfig)}, whole=("study",))
