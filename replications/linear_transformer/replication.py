"""Binds the Linear Transformer and what it is compared with to the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import Field, PositiveInt, model_validator

from replications.linear_transformer.exactness import Exactness
from replications.linear_transformer.generation import Generation
from replications.linear_transformer.model import (
    HashedAttention,
    LinearAttention,
    LinearTransformer,
    SoftmaxAttention,
)
from replications.linear_transformer.shown import LINES, PANELS, PICTURES
from shared.config import Strict, build
from shared.errors import ReplicationError
from shared.layers.categorical import CategoricalOutput
from shared.layers.mixture_of_logistics import MixtureOfLogistics
from shared.layers.sequence_transformer import SelfAttention
from shared.tasks.routed import Routed
from shared.tasks.sequences.pixels import PixelCorpusConfig
from shared.tasks.sequences.scaling_study import ATTENTION, Scaling
from shared.tasks.sequences.settings import SequenceRun
from shared.tasks.sequences.task import Sequences, sizes_of
from shared.tasks.studies import study_route


class ModelConfig(Strict):
    """Sizes of a model.

    Attributes:
        attention: elu(x) + 1, softmax, or Reformer's hashing.
        layers, heads, width, hidden: layers, heads, D, and the width of the feed-forward networks.
        dropout: of attention and feed-forward networks.
        output: a softmax, or a mixture of so many ``components`` logistics, whose symbols are levels of a pixel.
        positions: sinusoids added to embeddings, or beside embeddings of half the width, as in the authors' programs.
        rounds, buckets, chunk: of hashing; positions are compared with those of two chunks.
        max_length: symbols of the longest sequence.
    """

    attention: Literal["linear", "softmax", "lsh"]
    layers: PositiveInt
    heads: PositiveInt
    width: PositiveInt
    hidden: PositiveInt
    dropout: float = Field(default=0.0, ge=0, lt=1)
    output: Literal["categorical", "logistics"] = "categorical"
    components: PositiveInt = 10
    positions: Literal["added", "concatenated"] = "added"
    rounds: PositiveInt = 1
    buckets: PositiveInt | None = Field(default=None, multiple_of=2)
    chunk: PositiveInt | None = None
    max_length: PositiveInt

    @model_validator(mode="after")
    def _sizes_fit(self) -> ModelConfig:
        if self.width % self.heads:
            raise ValueError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        if self.attention == "lsh" and (self.buckets is None or self.chunk is None):
            raise ValueError("attention by hashing needs buckets and chunk")
        pairs = 2 if self.positions == "added" else 4
        if self.width % pairs:
            raise ValueError(
                f"width ({self.width}) must be a multiple of {pairs}: sinusoids come in pairs, where positions are "
                f"{self.positions}"
            )
        return self


def build_model(config: ModelConfig, vocabulary: int, causal: bool) -> LinearTransformer:
    """The untrained model of a variant."""
    sizes = {"width": config.width, "heads": config.heads}
    attentions: dict[str, Callable[[], SelfAttention]] = {
        "linear": partial(LinearAttention, **sizes),
        "softmax": partial(SoftmaxAttention, **sizes),
        "lsh": partial(
            HashedAttention, **sizes, rounds=config.rounds, buckets=config.buckets or 2, chunk=config.chunk or 1
        ),
    }
    output = (
        CategoricalOutput(width=config.width, symbols=vocabulary)
        if config.output == "categorical"
        else MixtureOfLogistics(width=config.width, levels=vocabulary - 1, components=config.components)
    )
    return LinearTransformer(
        symbols=vocabulary, width=config.width, hidden_size=config.hidden, attentions=attentions[config.attention],
        layers=config.layers, output=output, causal=causal, length=config.max_length,
        concatenated=config.positions == "concatenated", dropout=config.dropout,
    )  # fmt: skip


def suits(section: ModelConfig, run: SequenceRun) -> None:
    """Refuse what cannot be trained, or cannot draw, on the data of a variant.

    Raises:
        ReplicationError: names the setting.
    """
    where, (_, longest) = f"the model section of task '{run.task}'", sizes_of(run.corpus)
    if section.max_length < longest:
        raise ReplicationError(
            f"{where}: max_length {section.max_length} is less than the {longest} symbols of the longest sequence; "
            "raise it."
        )
    if section.output == "logistics" and not isinstance(run.corpus, PixelCorpusConfig):
        raise ReplicationError(f"{where}: output: logistics is for levels of pixels only; leave it out.")


NETWORKS = Sequences(
    model_config=ModelConfig, build_model=build_model, panels=PANELS, pictures=PICTURES, lines=LINES, suits=suits
)


def _build(section: dict[str, Any], vocabulary: int, causal: bool) -> LinearTransformer:
    """The untrained model of a ``model`` section, for studies."""
    return build_model(build(ModelConfig, section, where="the network of a study"), vocabulary, causal)


STUDIES = {"scaling": Scaling(ATTENTION), "exactness": Exactness(_build), "generation": Generation(_build)}
REPLICATION = Routed(NETWORKS, routes={"study": study_route(STUDIES, ModelConfig)}, whole=("study",))
