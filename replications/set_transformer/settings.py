"""Settings of the paper's models, and of the study of permutations and costs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from shared.config import Ascending
from shared.tasks.settings import HeadSizes, NetworkStudyConfig, Routes


class ModelConfig(HeadSizes):
    """Sizes of a model.

    Attributes:
        encoder: of what its blocks are.
        pooling: PMA, or the mean or the maximum of features.
        blocks: of the encoder.
        decoder: SABs after PMA, or rFFs after pooling.
        points: m, inducing points of an ISAB.
        norm: whether MABs have LayerNorm.
    """

    encoder: Literal["rff", "sab", "isab"] = "sab"
    pooling: Literal["attention", "mean", "max"] = "attention"
    blocks: PositiveInt
    decoder: NonNegativeInt
    points: PositiveInt = 16
    norm: bool = False


class OrderConfig(NetworkStudyConfig):
    """The ``model`` section of the study; all other keys are settings of the network, whose class checks them.

    Attributes:
        sizes: elements of the sets whose operations are counted
    """

    measured = ("*.invariance", "*.equivariance", "*.operations_n*", "*.growth")
    sizes: Ascending = Field(min_length=3)


KIND = "sets"
ROUTES: Routes = {"study": {"order": OrderConfig}}
