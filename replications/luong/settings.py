"""Settings of the paper's models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shared.config import Strict
from shared.tasks.settings import Routes, RouteSection


class AttentionConfig(Strict):
    """Which score and which alignment (sections 3.1 and 3.2).

    Attributes:
        window: D of local attention; 10 in the paper.
        positions: longest source that the score ``location`` reaches.
        first_word: of local-p, where S·σ(…) has the first word (equation 9): at 0, as in the authors' code, so that all
            words may be centres; or at 1, as in runs from before there was a choice, so that the last one never is.
    """

    score: Literal["dot", "general", "concat", "location"]
    alignment: Literal["global", "local-m", "local-p"] = "global"
    window: int | None = Field(default=None, ge=1)
    positions: int | None = Field(default=None, ge=1)
    first_word: Literal[0, 1] = 1

    @model_validator(mode="after")
    def _fitting(self) -> AttentionConfig:
        if (self.alignment == "global") != (self.window is None):
            raise ValueError("local attention needs a window, and global attention has none")
        if (self.score == "location") != (self.positions is not None):
            raise ValueError("the score 'location' needs positions, and no other score has them")
        if self.first_word == 0 and self.alignment != "local-p":
            raise ValueError("only the alignment local-p has a first_word")
        if self.score == "location" and self.alignment != "global":
            raise ValueError("the score 'location' gives weights by position and goes with global alignment only")
        return self


class ModelConfig(Strict):
    """Sizes as in section 4.1; without ``attention`` the plain encoder-decoder.

    Attributes:
        end_symbol: whether the encoder reads the source's end symbol after its words. The authors' code does not; runs
            from before there was a choice, whose sections do not name it, did.
    """

    embedding_size: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    layers: int = Field(ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    reverse: bool
    end_symbol: bool = True
    attention: AttentionConfig | None = None
    input_feeding: bool = False
    init_range: float = Field(default=0.1, gt=0)

    @model_validator(mode="after")
    def _something_to_feed(self) -> ModelConfig:
        if self.input_feeding and self.attention is None:
            raise ValueError("input_feeding needs attention")
        return self


class AlignerConfig(RouteSection):
    """The ``model`` section of a variant that is an aligner.

    Attributes:
        aligner: ``ibm1``, target words to source words; ``fast_align``, IBM Model 2 with a preference for the
            diagonal (Dyer et al. 2013), both directions made one by grow-diag-final-and.
        iterations: of expectation maximisation.
    """

    aligner: Literal["ibm1", "fast_align"]
    iterations: int = Field(default=5, ge=1)


KIND = "translation"
ROUTES: Routes = {"aligner": AlignerConfig}
