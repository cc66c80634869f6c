"""EfficientNet-lite0 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6): a small ImageNet network.

Its weights are available from a package registry, for machines that cannot reach other servers.
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
"""Pixels are normalised as (value - MEAN) / DEVIATION."""

WEIGHTS = "efficientnet-lite0.pth"
"""Name of the file with the weights in their fetched folder."""

_STEM, _HEAD, _CLASSES = 32, 1280, 1000
_EPSILON = 1e-3  # constants of batch normalisation in TensorFlow

# Names in the file of the weights to names here; the numbers of norms restart in every block.
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
    """A convolution without bias, padded as "SAME" in TensorFlow: an odd padding has its extra pixel at the end."""

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
        """Map (B, channels, height, width) to (B, width, ceil(height / stride), ceil(width / stride))."""
        if self.stride[0] > 1:
            sides = []
            for size in (input.shape[3], input.shape[2]):  # F.pad starts with the last axis
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
    """Expand, convolve depthwise, project; and add the input if the shapes agree."""

    def __init__(self, channels: int, shape: BlockShape) -> None:
        super().__init__()
        inner = channels * shape.expansion
        self.expand = _unit(SameConvolution(channels, inner, kernel=1)) if shape.expansion > 1 else nn.Identity()
        self.depthwise = _unit(SameConvolution(inner, inner, kernel=shape.kernel, stride=shape.stride, groups=inner))
        self.project = _unit(SameConvolution(inner, shape.width, kernel=1), activated=False)
        self.residual = shape.stride == 1 and shape.width == channels

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (B, channels, height, width) to (B, shape.width, …), each side divided by the stride and rounded up."""
        outputs: Tensor = self.project(self.depthwise(self.expand(inputs)))
        return outputs + inputs if self.residual else outputs


class EfficientNetLite0(nn.Module):
    """The whole network; ``stem`` and ``blocks`` compute feature maps."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _unit(SameConvolution(3, _STEM, kernel=3, stride=2))
        inputs = (_STEM, *(block.width for block in BLOCKS))
        self.blocks = nn.Sequential(*map(InvertedBottleneck, inputs, BLOCKS))
        self.head = _unit(SameConvolution(inputs[-1], _HEAD, kernel=1))
        self.classifier = nn.Linear(_HEAD, _CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Map normalised images (B, 3, height, width) to logits of the 1,000 classes of ImageNet (B, 1000)."""
        maps = self.head(self.blocks(self.stem(images)))
        scores: Tensor = self.classifier(maps.mean((2, 3)))  # dropout is left out, because this network is not trained
        return scores

    @classmethod
    def load(cls, path: Path) -> EfficientNetLite0:
        """Load the trained network in evaluation mode.

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
    """Translate a name, such as ``_blocks.3._bn0.weight`` to ``blocks.3.expand.norm.weight``."""
    *block, part, value = name.split(".")
    ours = _OURS | (_OURS_IN_BLOCK if block else _OURS_OUTSIDE)
    return ".".join([*(piece.removeprefix("_") for piece in block), ours.get(part, part), value])


def fold_norms(network: nn.Module) -> nn.Module:
    """Fold every batch normalisation into the convolution before it, in place.

    The network must be in evaluation mode. Its outputs change by rounding errors only.
    """
    for unit in list(network.modules()):
        parts = dict(unit.named_children())
        convolution, norm = parts.get("convolution"), parts.get("norm")
        if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            unit.convolution = nn.utils.fuse_conv_bn_eval(convolution, norm)
            del unit.norm
    return network
