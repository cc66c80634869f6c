"""Binds the paper's models, and the statistical aligners they are compared with, to the pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from replications.luong.model import EncoderDecoder
from shared.attention.alignments import Alignment, GlobalAlignment, LocalMonotonic, LocalPredictive
from shared.attention.scores import Score, build_score
from shared.config import Strict
from shared.tasks.routed import Routed
from shared.tasks.translation.aligners import aligner_route
from shared.tasks.translation.task import Translation


class AttentionConfig(Strict):
    """Which score and which alignment (sections 3.1 and 3.2).

    Attributes:
        window: D of local attention; 10 in the paper.
        positions: longest source that the score ``location`` reaches.
    """

    score: Literal["dot", "general", "concat", "location"]
    alignment: Literal["global", "local-m", "local-p"] = "global"
    window: int | None = Field(default=None, ge=1)
    positions: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _fitting(self) -> AttentionConfig:
        if (self.alignment == "global") != (self.window is None):
            raise ValueError("local attention needs a window, and global attention has none")
        if (self.score == "location") != (self.positions is not None):
            raise ValueError("the score 'location' needs positions, and no other score has them")
        if self.score == "location" and self.alignment != "global":
            raise ValueError("the score 'location' gives weights by position and goes with global alignment only")
        return self


class ModelConfig(Strict):
    """Sizes as in section 4.1; without ``attention`` the plain encoder-decoder."""

    embedding_size: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    layers: int = Field(ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    reverse: bool
    attention: AttentionConfig | None = None
    input_feeding: bool = False
    init_range: float = Field(default=0.1, gt=0)

    @model_validator(mode="after")
    def _something_to_feed(self) -> ModelConfig:
        if self.input_feeding and self.attention is None:
            raise ValueError("input_feeding needs attention")
        return self


def build_model(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> EncoderDecoder:
    """The untrained model of a variant."""
    return EncoderDecoder(
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
        attention=_attention(config),
        **config.model_dump(exclude={"attention"}),
    )


def _attention(config: ModelConfig) -> tuple[Score, Alignment] | None:
    attention = config.attention
    if attention is None:
        return None
    score = build_score(attention.score, size=config.hidden_size, positions=attention.positions)
    if attention.window is None:
        return score, GlobalAlignment()
    if attention.alignment == "local-m":
        return score, LocalMonotonic(window=attention.window)
    return score, LocalPredictive(window=attention.window, size=config.hidden_size)


TRANSLATION = Translation(model_config=ModelConfig, build_model=build_model)
REPLICATION = Routed(TRANSLATION, routes={"aligner": aligner_route})
