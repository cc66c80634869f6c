"""Settings of the caption generator and its baselines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict


class HardConfig(Strict):
    """How hard attention learns (section 4.1); see :mod:`.learning` and :mod:`.attention`.

    Attributes:
        reinforce: λ_r
        entropy: λ_e
    """

    reinforce: float = Field(ge=0)
    entropy: float = Field(ge=0)
    sampling: float = Field(default=0.5, gt=0, le=1)
    coin: Literal["image", "batch"] = "image"
    pathwise: bool = True


class ModelConfig(Strict):
    """Sizes by the paper's names.

    Attributes:
        attention: soft, hard, or in its place the mean of the annotation vectors.
        m: width of a word vector.
        n: width of the LSTM.
        a: width of the attention's layer.
        attention_layers: that an annotation vector goes through.
        initial_layers: of the perceptrons for h_0 and c_0.
        gate: whether there is a β.
        penalty: λ of doubly stochastic attention.
        penalty_mean: over captions, of sums over places (equation 14), or over places, of sums over a batch.
        hard: of hard attention, and needed only there.
        supervision: weight of what attention should have been.
        tanh_output: whether there is a tanh around the sum of the deep output.
        dropout, init_std, word_std: see :class:`.model.CaptionGenerator`.
    """

    attention: Literal["soft", "hard", "mean"]
    m: int = Field(ge=1)
    n: int = Field(ge=1)
    a: int = Field(ge=1)
    attention_layers: int = Field(default=1, ge=1)
    initial_layers: int = Field(default=1, ge=1)
    gate: bool = True
    penalty: float = Field(default=0.0, ge=0)
    penalty_mean: Literal["captions", "places"] = "captions"
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


KIND = "captioning"
