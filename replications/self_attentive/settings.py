"""Settings of the self-attentive encoder and its baselines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict
from shared.tasks.classification.settings import ClassificationRun, check_texts


class AttentionConfig(Strict):
    """The annotation matrix A (section 2): d_a, r, the coefficient of the penalty P, and what P is.

    ``rows``: the sum of the squares of the r × r entries of AAᵀ − I (equation 8). ``words``: the mean of those of the
    n × n entries of AᵀA − I, n the longest text of a batch, which has the gradient of the former divided by n².
    """

    d_a: int = Field(ge=1)
    r: int = Field(ge=1)
    penalty: float = Field(ge=0)
    penalty_over: Literal["rows", "words"] = "rows"


class ConvolutionConfig(Strict):
    """The convolution of the baseline: its features and how many words each sees."""

    features: int = Field(ge=1)
    window: int = Field(ge=1)

    @model_validator(mode="after")
    def _centred(self) -> ConvolutionConfig:
        if self.window % 2 == 0:
            raise ValueError(f"the window ({self.window}) must be odd, so that it has a word in its middle")
        return self


class PrunedConfig(Strict):
    """Hidden units of the pruned layer for every row and for every column of M (appendix A)."""

    p: int = Field(ge=0)
    q: int = Field(ge=0)

    @model_validator(mode="after")
    def _some(self) -> PrunedConfig:
        if self.p + self.q == 0:
            raise ValueError("p and q cannot both be 0: there would be no hidden unit")
        return self


class ModelConfig(Strict):
    """Sizes by the paper's names.

    Attributes:
        encoder: how a text is embedded.
        d: width of a word vector.
        u: width of the LSTM in each direction; the convolution has ``features`` instead.
        attention, cnn: of the encoders of these names, and of these only.
        b: hidden units of the MLP, or
        pruned: in their place.
        relation: width of a row of F_r, for two texts.
        dropout: on the hidden units.
        word_std: standard deviation of the initial word vectors.
    """

    encoder: Literal["attention", "max", "cnn"]
    d: int = Field(ge=1)
    u: int = Field(ge=1)
    attention: AttentionConfig | None = None
    cnn: ConvolutionConfig | None = None
    b: int | None = Field(default=None, ge=1)
    pruned: PrunedConfig | None = None
    relation: int | None = Field(default=None, ge=1)
    dropout: float = Field(ge=0, lt=1)
    word_std: float = Field(default=0.1, gt=0)

    @model_validator(mode="after")
    def _its_own_settings(self) -> ModelConfig:
        for name in ("attention", "cnn"):
            if self.encoder == name and getattr(self, name) is None:
                raise ValueError(f"the encoder '{name}' needs the settings '{name}'")
        if (self.b is None) == (self.pruned is None):
            raise ValueError("give either b or pruned")
        if self.pruned is not None and self.relation is not None:
            raise ValueError("the pruned layer is of one text's embedding; leave out relation or pruned")
        return self


def suits(section: ModelConfig, run: ClassificationRun, where: str) -> None:
    """Refuse a corpus of pairs for a model of single texts, and the other way round."""
    check_texts(run, where, pairs=section.relation is not None)


KIND = "classification"
