"""EfficientNet-lite0 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6): a small ImageNet network.

Its weights come through a package registry, so that a machine without the web at large has a trained encoder too.
"""

from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shared.errors import ReplicationError
from shared.vision.efficientnet_blocks import BLOCKS, BlockShape

MEAN, DEVIATION = 127.0, 128.0
"""Pixels enter as (value - MEAN) / DEVIATION."""

WEIGHTS = "efficientnet-lite0.pth"
"""The file of the weights in their fetched folder."""

_STEM, _HEAD, _CLASSES = 32, 1280, 1000
_EPSILON = 1e-3  # of batch normalisation, as in TensorFlow

# A name in the file of the weights to ours; the numbers of its norms start anew in every block.
_OURS = {
    "_conv_stem": "stem.convolution",
    "_conv_head": "head.convolution",
    "_fc": "classifier",
    "_expand_conv": "expand.convolution",
    "_depthwise_conv": "depthwise.convolution",
    "_project_conv": "project.convolution",
}
_OURS_OUTSIDE = {"_bn0": "stem.norm", "_bn1": "head.norm"}
_OURS_IN_BLOCK = {"_bn0": "expand.norm", "_bn1": "depthwise.norm", "_bn2": "project.norm"}


class SameConvolution(nn.Conv2d):
    """A convolution without bias, padded as TensorFlow's "SAME": what is odd of the padding comes at the end."""

    def __init__(self, channels: int, width: int, *, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(
            channels,
            width,
            kernel,
            stride,
            padding=kernel // 2 if stride == 1 else 0,
            groups=groups,
            bias=False,
        )

    def forward(self, input: Tensor) -> Tensor:
        """(B, channels, height, width) to (B, width, ceil(height / stride), ceil(width / stride))."""
        if self.stride[0] > 1:
            sides = []
            for size in (input.shape[3], input.shape[2]):  # F.pad begins with the last axis
                stride, kernel = self.stride[0], self.kernel_size[0]
                missing = max(0, (math.ceil(size / stride) - 1) * stride + kernel - size)
                sides += [missing // 2, missing - missing // 2]
            input = F.pad(input, sides)
        return super().forward(input)


def _unit(convolution: SameConvolution, *, activated: bool = True) -> nn.Sequential:
    parts: list[tuple[str, nn.Module]] = [("convolution", convolution)]
    parts.append(("norm", nn.BatchNorm2d(convolution.out_channels, eps=_EPSILON)))
    if activated:
        parts.append(("activation", nn.ReLU6(inplace=True)))
    return nn.Sequential(OrderedDict(parts))


class InvertedBottleneck(nn.Module):
    """Widen, convolve every channel by itself, narrow; and add the input where the shapes allow it."""

    def __init__(self, channels: int, shape: BlockShape) -> None:
        super().__init__()
        inner = channels * shape.expansion
        self.expand = _unit(SameConvolution(channels, inner, kernel=1)) if shape.expansion > 1 else nn.Identity()
        self.depthwise = _unit(SameConvolution(inner, inner, kernel=shape.kernel, stride=shape.stride, groups=inner))
        self.project = _unit(SameConvolution(inner, shape.width, kernel=1), activated=False)
        self.residual = shape.stride == 1 and shape.width == channels

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, channels, height, width) to (B, shape.width, …), each side divided by the stride, rounded up."""
        outputs: Tensor = self.project(self.depthwise(self.expand(inputs)))
        return outputs + inputs if self.residual else outputs


class EfficientNetLite0(nn.Module):
    """The whole network; ``stem`` and ``blocks`` alone make feature maps."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _unit(SameConvolution(3, _STEM, kernel=3, stride=2))
        inputs = (_STEM, *(block.width for block in BLOCKS))
        self.blocks = nn.Sequential(*map(InvertedBottleneck, inputs, BLOCKS))
        self.head = _unit(SameConvolution(inputs[-1], _HEAD, kernel=1))
        self.classifier = nn.Linear(_HEAD, _CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the 1,000 classes of ImageNet, (B, 1000), from normalised images (B, 3, height, width)."""
        maps = self.head(self.blocks(self.stem(images)))
        scores: Tensor = self.classifier(maps.mean((2, 3)))  # without the dropout of training
        return scores

    @classmethod
    def load(cls, path: Path) -> EfficientNetLite0:
        """The trained network, in evaluation mode.

        Raises:
            ReplicationError: the file is missing, damaged or of another network.
        """
        network = cls()
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            network.load_state_dict({_own_name(name): value for name, value in state.items()})
        except FileNotFoundError:
            raise ReplicationError(
                f"{path} does not exist; run the features stage, which fetches the data set '{path.parent.name}'."
            ) from None
        except (pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, ValueError) as error:
            raise ReplicationError(
                f"{path} does not hold the weights of EfficientNet-lite0 ({type(error).__name__}); delete "
                f"{path.parent} and fetch '{path.parent.name}' anew."
            ) from None
        return network.eval()


def _own_name(name: str) -> str:
    """``_blocks.3._bn0.weight`` to ``blocks.3.expand.norm.weight``."""
    *block, part, value = name.split(".")
    ours = _OURS | (_OURS_IN_BLOCK if block else _OURS_OUTSIDE)
    return ".".join([*(piece.removeprefix("_") for piece in block), ours.get(part, part), value])


def fold_norms(network: nn.Module) -> nn.Module:
    """Turn every convolution and the batch normalisation after it into one convolution, in place.

    Only for a network in evaluation mode. The naive twin is the network as it was: values are the same up to rounding.
    """
    for unit in list(network.modules()):
        parts = dict(unit.named_children())
        convolution, norm = parts.get("convolution"), parts.get("norm")
        if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            unit.convolution = nn.utils.fuse_conv_bn_eval(convolution, norm)
            del unit.norm
    return network
