"""Binds the caption generator and its baselines to the pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from replications.show_attend_tell.attention import (
    Glimpse,
    HardAttention,
    MeanVector,
    NoGlimpse,
    SoftAttention,
)
from replications.show_attend_tell.learning import Reinforce
from replications.show_attend_tell.model import CaptionGenerator
from shared.config import Strict
from shared.tasks.captioning.task import Captioning
from shared.vision.features import Grid


class HardConfig(Strict):
    """How hard attention learns (section 4.1); see :class:`Reinforce` and :class:`HardAttention`."""

    reinforce: float = Field(ge=0, description="λ_r")
    entropy: float = Field(ge=0, description="λ_e")
    sampling: float = Field(default=0.5, gt=0, le=1)
    coin: Literal["image", "batch"] = "image"
    pathwise: bool = True


class ModelConfig(Strict):
    """Sizes by the paper's names.

    Attributes:
        attention: soft, hard, or in its place the mean of the annotation vectors, or nothing but the initial states.
        m: width of a word vector.
        n: width of the LSTM.
        a: width of the attention's layer; that of an annotation vector in the code.
        attention_layers: that an annotation vector goes through.
        initial_layers: of the perceptrons for h_0 and c_0.
        gate: whether there is a β.
        penalty: λ of doubly stochastic attention.
        hard: of hard attention, and needed only there.
        supervision: weight of what attention should have been.
        tanh_output: whether there is a tanh around the sum of the deep output.
        dropout, init_std, word_std: see :class:`CaptionGenerator`.
    """

    attention: Literal["soft", "hard", "mean", "initial"]
    m: int = Field(ge=1)
    n: int = Field(ge=1)
    a: int = Field(ge=1)
    attention_layers: int = Field(default=1, ge=1)
    initial_layers: int = Field(default=1, ge=1)
    gate: bool = True
    penalty: float = Field(default=0.0, ge=0)
    hard: HardConfig | None = None
    supervision: float = Field(default=0.0, ge=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    tanh_output: bool = True
    init_std: float | None = Field(default=0.01, gt=0)
    word_std: float = Field(default=0.01, gt=0)

    @model_validator(mode="after")
    def _hard_attention_knows_how_to_learn(self) -> ModelConfig:
        if self.attention == "hard" and self.hard is None:
            raise ValueError("hard attention needs the settings 'hard'")
        return self


def build_model(config: ModelConfig, vocabulary: int, grid: Grid) -> CaptionGenerator:
    """The untrained model of a variant, for annotation vectors of a grid."""
    reinforce = None
    if config.attention == "hard" and config.hard is not None:
        hard = config.hard
        reinforce = Reinforce(reward=hard.reinforce, entropy=hard.entropy, sampling=hard.sampling, coin=hard.coin)
    return CaptionGenerator(
        vocabulary=vocabulary, embedding_size=config.m, hidden_size=config.n, annotation_size=grid.size,
        glimpse=_glimpse(config, grid.size), gate=config.gate, initial_layers=config.initial_layers,
        dropout=config.dropout, tanh=config.tanh_output, penalty=config.penalty, supervision=config.supervision,
        reinforce=reinforce, init_std=config.init_std, word_std=config.word_std,
    )  # fmt: skip


def _glimpse(config: ModelConfig, annotation_size: int) -> Glimpse:
    if config.attention == "mean":
        return MeanVector(annotation_size=annotation_size)
    if config.attention == "initial":
        return NoGlimpse()
    sizes = {"annotation_size": annotation_size, "attention_size": config.a, "layers": config.attention_layers}
    if config.hard is not None and config.attention == "hard":
        return HardAttention(pathwise=config.hard.pathwise, **sizes)
    return SoftAttention(**sizes)


REPLICATION = Captioning(model_config=ModelConfig, build_model=build_model)
