"""Settings of Transformer-XL and of what it is compared with."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from shared.config import Strict
from shared.tasks.language.settings import SpeedConfig
from shared.tasks.sections import Routes


class ModelConfig(Strict):
    """Sizes by the names of the released code.

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


KIND = "language"
MODEL = ModelConfig
ROUTES: Routes = {"study": {"evaluation_speed": SpeedConfig}}
