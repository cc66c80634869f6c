"""Settings of image encoders; nothing here imports torch."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from itertools import accumulate
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from shared.config import Strict, near


class BlockShape(NamedTuple):
    """An inverted bottleneck: its kernel and stride, how much it widens its input inside, and its channels."""

    kernel: int
    stride: int
    expansion: int
    width: int


BLOCKS = tuple(
    BlockShape(kernel, 1 if number else stride, expansion, width)
    for repeats, kernel, stride, expansion, width in (
        (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
        (1, 3, 1, 6, 320),
    )
    for number in range(repeats)
)  # fmt: skip
"""The 16 blocks of EfficientNet-lite0 (Tan & Le 2019, table 1); only the first of a stage strides."""
_STRIDES = list(accumulate((block.stride for block in BLOCKS), operator.mul, initial=2))[1:]  # 2 is the stem's


class Layer(NamedTuple):
    """The map that a layer gives: its channels, and the pixels of the image to one of its places."""

    size: int
    stride: int


LAYERS: Mapping[str, Mapping[str, Layer]] = {
    "efficientnet-lite0": {
        f"block{number}": Layer(block.width, stride)
        for number, (block, stride) in enumerate(zip(BLOCKS, _STRIDES, strict=True))
    },
    "vgg19": {"conv5_4": Layer(512, 16)},
}
"""Network to the layers that annotation vectors can be taken from.

``conv5_4`` is taken after its ReLU and before the last max-pooling: the paper's 14 x 14 places of 512 values.
"""


class EncoderConfig(Strict):
    """Which network turns images into annotation vectors, and how finely.

    Attributes:
        name: ``efficientnet-lite0`` comes from a package; ``vgg19``, the paper's, from the web.
        layer: whose map is taken; see `LAYERS`.
        side: pixels that images are resized to, wide and high.
        pool: the mean is taken over squares of so many places a side.
        standardise: whether each of an annotation's values is brought to mean 0 and deviation 1 over training images;
            those of a network without a rectifier at its end differ widely.
    """

    name: Literal["efficientnet-lite0", "vgg19"]
    layer: str
    side: int = Field(default=224, gt=0)
    pool: int = Field(default=1, gt=0)
    standardise: bool = False

    @model_validator(mode="after")
    def _possible(self) -> EncoderConfig:
        layers = LAYERS[self.name]
        if self.layer not in layers:
            raise ValueError(f"{self.name} has no layer '{self.layer}'{near(self.layer, layers)}")
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
