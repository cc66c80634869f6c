"""The blocks of EfficientNet-lite0 (Tan & Le 2019, table 1) as numbers, for settings to be checked without torch."""

from __future__ import annotations

from typing import NamedTuple


class BlockShape(NamedTuple):
    """An inverted bottleneck: its kernel and stride, how much it widens its input inside, and its channels."""

    kernel: int
    stride: int
    expansion: int
    width: int


_STAGES = (
    (1, BlockShape(3, 1, 1, 16)),
    (2, BlockShape(3, 2, 6, 24)),
    (2, BlockShape(5, 2, 6, 40)),
    (3, BlockShape(3, 2, 6, 80)),
    (3, BlockShape(5, 1, 6, 112)),
    (4, BlockShape(5, 2, 6, 192)),
    (1, BlockShape(3, 1, 6, 320)),
)

BLOCKS: tuple[BlockShape, ...] = tuple(
    shape if number == 0 else shape._replace(stride=1) for repeats, shape in _STAGES for number in range(repeats)
)
"""The 16 blocks (Tan & Le 2019, table 1); only the first of a stage strides."""


def strides() -> list[int]:
    """Pixels of the image to one place of the map that each block gives."""
    found, stride = [], 2  # the stem's
    for block in BLOCKS:
        stride *= block.stride
        found.append(stride)
    return found
