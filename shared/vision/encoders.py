"""Image encoders: the frozen first layers of a trained network map pixels to annotation vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shared.errors import ReplicationError
from shared.vision import efficientnet_lite
from shared.vision.settings import LAYERS, EncoderConfig, Layer


class ImageEncoder(nn.Module):
    """The first layers of a network, frozen and in evaluation mode (Xu et al. 2015, section 3.1.1).

    Attributes:
        size: width of an annotation vector (D).
        rows, columns: size of the grid of places; L = rows x columns.
    """

    mean: Tensor
    deviation: Tensor
    centre: Tensor
    spread: Tensor

    def __init__(
        self, network: nn.Module, *, layer: Layer, side: int, pool: int, mean: Sequence[float],
        deviation: Sequence[float],
    ) -> None:  # fmt: skip
        """Wrap a network that maps normalised images (B, 3, side, side) to the map of ``layer``.

        Args:
            network: the trained network, which is frozen here.
            layer: the channels and the stride of its feature map.
            side: width and height in pixels to which images are resized.
            pool: side, in places, of the squares over which the map is averaged.
            mean: mean of each colour channel, for pixels from 0 to 255; it is subtracted.
            deviation: standard deviation of each colour channel; pixels are divided by it.
        """
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.size = layer.size
        self.rows = self.columns = side // layer.stride // pool
        self._side, self._pool = side, pool
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32)[:, None, None])
        self.register_buffer("centre", torch.zeros(self.size))
        self.register_buffer("spread", torch.ones(self.size))
        self.eval().requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, height, width, 3) uint8 to annotation vectors (B, L, D) float32, row by row."""
        pixels = images.permute(0, 3, 1, 2).float()  # the memory layout stays channels-last
        if pixels.shape[2:] != (self._side, self._side):
            pixels = F.interpolate(pixels, (self._side, self._side), mode="bilinear", antialias=True)
        maps: Tensor = self.network((pixels - self.mean) / self.deviation)
        if self._pool > 1:
            maps = F.avg_pool2d(maps, self._pool)
        return (maps.permute(0, 2, 3, 1).flatten(1, 2) - self.centre) / self.spread

    @torch.inference_mode()
    def standardise(self, batches: Iterable[Tensor]) -> None:
        """Standardise each component over the places of the images in ``batches``, (B, H, W, 3) uint8 each.

        A constant component becomes 0.
        """
        device = self.mean.device
        moments, places = torch.zeros(2, self.size, dtype=torch.float64, device=device), 0
        self.centre.zero_()
        self.spread.fill_(1)
        for images in batches:
            values = self(images.to(device)).double().flatten(0, 1)
            moments += torch.stack((values.sum(0), values.square().sum(0)))
            places += len(values)
        mean, square = moments / places
        deviation = (square - mean.square()).clamp_min(0).sqrt()
        self.centre.copy_(mean)
        self.spread.copy_(torch.where(deviation > 1e-6, deviation, 1.0))


def build_encoder(config: EncoderConfig, *, data: Path = Path("data")) -> ImageEncoder:
    """Build the trained encoder, on the accelerator if there is one.

    Args:
        config: the settings of the encoder.
        data: folder of the fetched data sets, including `EncoderConfig.dataset`.

    Raises:
        ReplicationError: the weights are missing or cannot be downloaded; the message says what to do.
    """
    if config.dataset:
        whole = efficientnet_lite.EfficientNetLite0.load(data / config.dataset / efficientnet_lite.WEIGHTS)
        blocks = whole.blocks[: int(config.layer.removeprefix("block")) + 1]
        network: nn.Module = efficientnet_lite.fold_norms(nn.Sequential(whole.stem, blocks))
        mean, deviation = [efficientnet_lite.MEAN] * 3, [efficientnet_lite.DEVIATION] * 3
    else:
        network, mean, deviation = vgg19()
    layer = LAYERS[config.name][config.layer]
    encoder = ImageEncoder(network, layer=layer, side=config.side, pool=config.pool, mean=mean, deviation=deviation)
    return encoder.to("cuda" if torch.cuda.is_available() else "cpu")


def vgg19() -> tuple[nn.Module, list[float], list[float]]:
    """VGG-19 up to its last ReLU, before the last max-pooling; and the mean and deviation of its pixels, of 255."""
    from torchvision.models import get_model, get_model_weights

    weights = get_model_weights("vgg19")["IMAGENET1K_V1"]
    try:
        state = weights.get_state_dict(progress=True, check_hash=True)
    except (OSError, RuntimeError) as error:
        raise ReplicationError(
            f"the weights of vgg19 cannot be downloaded ({error}); connect to the web, or put the file of "
            f"{weights.url} into {Path(torch.hub.get_dir()) / 'checkpoints'}."
        ) from None
    network = get_model("vgg19")
    network.load_state_dict(state)
    colours = weights.transforms()  # relative to 255
    return network.features[:-1], [255 * x for x in colours.mean], [255 * x for x in colours.std]
