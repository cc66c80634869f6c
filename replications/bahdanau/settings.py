"""Settings of RNNsearch and RNNencdec."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict


class ModelConfig(Strict):
    """Sizes as in the paper's appendix A: m, n, n′ and l; ``init_std`` and ``dropout`` are 0.01 and 0 there.

    Attributes:
        wiring: which words the state that predicts y_i has read (:mod:`replications.bahdanau.model`). A section that
            does not name it is of a run from before there was a choice, when all were wired by the appendix.
    """

    kind: Literal["rnnsearch", "rnnencdec"]
    embedding_size: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    alignment_size: int | None = Field(default=None, ge=1)
    maxout_size: int = Field(ge=1)
    init_std: float = Field(default=0.01, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    wiring: Literal["program", "appendix"] = "appendix"

    @model_validator(mode="after")
    def _alignment_where_it_is(self) -> ModelConfig:
        if (self.kind == "rnnsearch") != (self.alignment_size is not None):
            raise ValueError("rnnsearch needs an alignment_size, and rnnencdec has none")
        return self


KIND = "translation"
