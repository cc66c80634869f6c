"""Settings of Transformer-XL and of what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from shared.config import Strict
from shared.tasks.settings import NetworkStudyConfig, Routes


class ModelConfig(Strict):
    """Sizes by the names of the authors' scripts.

    Attributes:
        network: Transformer-XL and its ablations, or the LSTM.
        d_model: width D; of the LSTM's embeddings and states too.
        n_layer: layers.
        n_head, d_head, d_inner: heads, the width of their keys, and that of the feed-forward network.
        positions: how symbols know their places.
        shaw_distances: the distance from which on all have one vector, for ``shaw``.
        untie_r: every layer has its own u and v.
        dropout, dropatt: of all but attention's weights, and of these.
        cutoffs, div_val: clusters of the adaptive softmax, and by how much the embeddings of each are narrower than
            those of the one before.
        tied_projections: per cluster, whether the softmax has the embedding's projection.
        init_std: standard deviation of the initial weights.
    """

    network: Literal["transformer", "lstm"] = "transformer"
    d_model: PositiveInt
    n_layer: PositiveInt
    n_head: PositiveInt = 1
    d_head: PositiveInt = 1
    d_inner: PositiveInt = 1
    positions: Literal["relative", "shaw", "absolute"] = "relative"
    shaw_distances: NonNegativeInt = 0
    untie_r: bool = False
    dropout: float = Field(ge=0, lt=1)
    dropatt: float = Field(default=0.0, ge=0, lt=1)
    cutoffs: tuple[PositiveInt, ...] = ()
    div_val: PositiveInt = 1
    tied_projections: tuple[bool, ...] = ()
    init_std: float = Field(default=0.02, gt=0)

    @model_validator(mode="after")
    def _its_own_settings(self) -> ModelConfig:
        if self.network == "transformer":
            sizes = {"n_head", "d_head", "d_inner"} - self.model_fields_set
            if sizes:
                raise ValueError(f"a Transformer needs {', '.join(sorted(sizes))}")
            if self.positions == "absolute" and self.dropatt:
                raise ValueError("attention with absolute positions drops no weights; leave out dropatt")
            if (self.positions == "shaw") != bool(self.shaw_distances):
                raise ValueError("shaw_distances is the largest distance of positions 'shaw', and of no others")
        return self


class SpeedConfig(NetworkStudyConfig):
    """A variant's ``model`` section; all other keys are settings of the network, whose class checks them.

    Attributes:
        lengths: A, symbols
        sliding: settings of the network that reads sliding windows, over those of the other
        seconds: how long the two ways are timed at each length
    """

    measured = ("speedup@*", "token_ratio@*", "*.seconds*", "*.loss*")
    lengths: list[PositiveInt] = Field(min_length=1)
    sliding: dict[str, Any] = Field(default={})
    seconds: PositiveFloat = 6.0

    def networks(self) -> Iterator[dict[str, Any]]:
        """The network that keeps states, and the one that reads windows."""
        yield self.network
        yield {**self.network, **self.sliding}


KIND = "language"
ROUTES: Routes = {"study": {"evaluation_speed": SpeedConfig}}
