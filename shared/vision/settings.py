"""Settings of image encoders; nothing here imports torch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from shared.config import Strict
from shared.vision.efficientnet_blocks import BLOCKS, strides


class Layer(NamedTuple):
    """The map that a layer gives: its channels, and the pixels of the image to one of its places."""

    size: int
    stride: int


LAYERS: Mapping[str, Mapping[str, Layer]] = {
    "efficientnet-lite0": {
        f"block{number}": Layer(block.width, stride)
        for number, (block, stride) in enumerate(zip(BLOCKS, strides(), strict=True))
    },
    "vgg19": {"conv5_4": Layer(512, 16)},
    "resnet101": {"layer3": Layer(1024, 16), "layer4": Layer(2048, 32)},
}
"""Network to the layers that annotation vectors can be taken from.

``conv5_4`` is taken after its ReLU and before the last max-pooling: the paper's 14 x 14 places of 512 values.
"""


class EncoderConfig(Strict):
    """Which network turns images into annotation vectors, and how finely.

    Attributes:
        name: ``efficientnet-lite0`` comes from a package; ``vgg19`` (the paper's) and ``resnet101`` from the web.
        layer: whose map is taken; see `LAYERS`.
        side: pixels that images are resized to, wide and high.
        pool: the mean is taken over squares of so many places a side.
        standardise: whether each of an annotation's values is brought to mean 0 and deviation 1 over training images;
            those of a network without a rectifier at its end differ widely.
    """

    name: Literal["efficientnet-lite0", "vgg19", "resnet101"]
    layer: str
    side: int = Field(default=224, gt=0)
    pool: int = Field(default=1, gt=0)
    standardise: bool = False

    @model_validator(mode="after")
    def _possible(self) -> EncoderConfig:
        layers = LAYERS[self.name]
        if self.layer not in layers:
            near = difflib.get_close_matches(self.layer, layers, n=1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            raise ValueError(f"{self.name} has no layer '{self.layer}'{hint}; it has {', '.join(layers)}")
        stride = layers[self.layer].stride
        if self.side % (stride * self.pool):
            raise ValueError(
                f"'side' must be a multiple of {stride * self.pool} ({stride} pixels to a place of {self.layer}, "
                f"'pool' {self.pool})"
            )
        return self

    @property
    def dataset(self) -> str | None:
        """The data set that has the weights, to be fetched before `build_encoder`; None where torchvision has them."""
        return "efficientnet_lite0" if self.name == "efficientnet-lite0" else None
