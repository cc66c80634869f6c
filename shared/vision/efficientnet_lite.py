"""EfficientNet-lite0 (Tan & Le 2019, without squeeze-and-excitation and with ReLU6): a small ImageNet network.

Its weights are available from a package registry, for machines that cannot reach other servers. The blocks of
torchvision pad otherwise than TensorFlow, for which the weights were trained.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from shared.errors import ReplicationError
from shared.vision.settings import BLOCKS, BlockShape

MEAN, DEVIATION = 127.0, 128.0
"""Pixels are normalised as (value - MEAN) / DEVIATION."""

WEIGHTS = "efficientnet-lite0.pth"
"""Name of the file with the weights in their fetched folder."""

_STEM, _HEAD, _CLASSES = 32, 1280, 1000
_EPSILON = 1e-3  # constants of batch normalisation in TensorFlow


def _unit(
    channels: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1, *, activated: bool = True
) -> nn.Sequential:
    """A convolution, padded as "SAME" in TensorFlow, and its norm; a stride of 2 is for maps of even sides."""
    return nn.Sequential(
        # With a stride the extra pixel is at the end.
        nn.ZeroPad2d(((kernel - 2) // 2, (kernel - 1) // 2) * 2) if stride > 1 else nn.Identity(),
        nn.Conv2d(channels, width, kernel, stride, kernel // 2 if stride == 1 else 0, groups=groups, bias=False),
        nn.BatchNorm2d(width, eps=_EPSILON),
        nn.ReLU6(inplace=True) if activated else nn.Identity(),
    )


class InvertedBottleneck(nn.Module):
    """Expand, convolve depthwise, project; and add the input if the shapes agree."""

    def __init__(self, channels: int, shape: BlockShape) -> None:
        super().__init__()
        inner = channels * shape.expansion
        self.expand = _unit(channels, inner) if shape.expansion > 1 else nn.Identity()
        self.depthwise = _unit(inner, inner, shape.kernel, shape.stride, inner)
        self.project = _unit(inner, shape.width, activated=False)
        self.residual = shape.stride == 1 and shape.width == channels

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (B, channels, height, width) to (B, shape.width, …), each side divided by the stride."""
        outputs: Tensor = self.project(self.depthwise(self.expand(inputs)))
        return outputs + inputs if self.residual else outputs


class EfficientNetLite0(nn.Module):
    """The whole network; ``stem`` and ``blocks`` compute feature maps."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _unit(3, _STEM, kernel=3, stride=2)
        inputs = (_STEM, *(block.width for block in BLOCKS))
        self.blocks = nn.Sequential(*map(InvertedBottleneck, inputs, BLOCKS))
        self.head = _unit(inputs[-1], _HEAD)
        self.classifier = nn.Linear(_HEAD, _CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Map normalised images (B, 3, height, width) to logits of the 1,000 classes of ImageNet (B, 1000)."""
        maps = self.head(self.blocks(self.stem(images)))
        return self.classifier(maps.mean((2, 3)))  # dropout is left out, because this network is not trained

    @classmethod
    def load(cls, path: Path) -> EfficientNetLite0:
        """Load the trained network in evaluation mode.

        Raises:
            ReplicationError: the file is missing, damaged or of another network.
        """
        network = cls()
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            # The file has other names, in the same order.
            network.load_state_dict(dict(zip(network.state_dict(), state.values(), strict=True)))
        except (OSError, pickle.UnpicklingError, RuntimeError, EOFError, AttributeError, ValueError) as error:
            raise ReplicationError(
                f"{path} does not hold the weights of EfficientNet-lite0 ({type(error).__name__}); delete "
                f"{path.parent} and run the features stage, which fetches '{path.parent.name}' anew."
            ) from None
        return network.eval()


def fold_norms(network: nn.Module) -> nn.Module:
    """Fold every batch normalisation into the convolution before it, in place.

    The network must be in evaluation mode. Its outputs change by rounding errors only.
    """
    for unit in network.modules():
        if isinstance(unit, nn.Sequential) and len(unit) == 4 and isinstance(unit[2], nn.BatchNorm2d):
            unit[1], unit[2] = nn.utils.fuse_conv_bn_eval(unit[1], unit[2]), nn.Identity()  # type: ignore[type-var]
    return network
