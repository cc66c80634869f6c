"""From pixels to annotation vectors: the places' order, the values, and what is refused."""

from urllib.error import URLError

import pytest
import torch
from torch import nn
from torchvision.models import _api, get_model

from shared.config import build
from shared.errors import ReplicationError
from shared.vision.efficientnet_lite import EfficientNetLite0
from shared.vision.encoders import ImageEncoder, build_encoder, vgg19
from shared.vision.settings import LAYERS, EncoderConfig, Layer
from tests.vision.efficientnet_weights import random_state

IDENTITY = {"mean": [0.0] * 3, "deviation": [1.0] * 3}


def random_images(*shape):
    return torch.randint(0, 256, (*shape, 3), dtype=torch.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with random weights in it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "efficientnet_lite0").mkdir()
    torch.save(random_state(), folder / "efficientnet_lite0" / "efficientnet-lite0.pth")
    return folder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "efficientnet-lite1"}, "efficientnet-lite0"),
        ({"layer": "blok10"}, "efficientnet-lite0 has no layer 'blok10' .did you mean 'block10'"),
        ({"layer": "16"}, "has no layer '16'; there are block0, .*block15"),
        ({"name": "vgg19"}, "vgg19 has no layer 'block10'"),
        ({"side": 225}, "'side' must be a multiple of 16"),
        ({"pool": 3}, "'side' must be a multiple of 48"),
        ({"pool": 0}, "pool"),
    ],
)
def test_what_no_encoder_can_be_is_refused(settings, message):
    with pytest.raises(ReplicationError, match=message):
        build(EncoderConfig, {"name": "efficientnet-lite0", "layer": "block10"} | settings, where="here")


@pytest.mark.parametrize(("layer", "size", "places"), [("block10", 112, 14), ("block15", 320, 7), ("block4", 40, 28)])
def test_the_maps_of_an_image_of_224_pixels(data, layer, size, places):
    encoder = build_encoder(EncoderConfig(name="efficientnet-lite0", layer=layer), data=data)
    assert (encoder.size, encoder.rows, encoder.columns) == (size, places, places)
    assert encoder(random_images(1, 224, 224)).shape == (1, places * places, size)


@pytest.mark.parametrize(("layer", "pool"), [("block0", 1), ("block10", 1), ("block10", 2), ("block15", 1)])
def test_vectors_are_the_maps_of_the_whole_network_row_by_row(data, layer, pool):
    encoder = build_encoder(EncoderConfig(name="efficientnet-lite0", layer=layer, side=64, pool=pool), data=data)
    images = random_images(2, 64, 64)
    found = encoder(images)
    network = EfficientNetLite0.load(data / "efficientnet_lite0" / "efficientnet-lite0.pth")
    with torch.no_grad():
        maps = network.stem((images.permute(0, 3, 1, 2) - 127.0) / 128.0)
        for block in network.blocks[: int(layer.removeprefix("block")) + 1]:
            maps = block(maps)
    assert found.dtype == torch.float32
    assert found.shape == (2, encoder.rows * encoder.columns, encoder.size)
    for row in range(encoder.rows):
        for column in range(encoder.columns):
            square = maps[:, :, row * pool : (row + 1) * pool, column * pool : (column + 1) * pool]
            place = found[:, row * encoder.columns + column]
            assert torch.allclose(place, square.mean((2, 3)), rtol=1e-4, atol=1e-4)


def test_an_encoder_is_frozen_and_in_evaluation_mode(data):
    encoder = build_encoder(EncoderConfig(name="efficientnet-lite0", layer="block10"), data=data)
    assert not any(weights.requires_grad for weights in encoder.parameters())
    assert not any(module.training for module in encoder.modules())


def test_images_are_resized_as_a_whole():
    encoder = ImageEncoder(nn.Identity(), layer=Layer(3, 1), side=4, pool=1, **IDENTITY)
    halves = torch.zeros(1, 16, 8, 3, dtype=torch.uint8)
    halves[:, :, 4:] = torch.tensor([10, 20, 30], dtype=torch.uint8)
    found = encoder(halves).view(4, 4, 3)
    assert torch.allclose(found[:, 0], torch.zeros(4, 3))
    assert torch.allclose(found[:, 3], torch.tensor([10.0, 20.0, 30.0]).expand(4, 3))
    assert torch.allclose(found, found[:1].expand(4, 4, 3))


def test_colours_are_normalised_one_by_one():
    encoder = ImageEncoder(
        nn.Identity(), layer=Layer(3, 1), side=2, pool=1, mean=[1.0, 2.0, 3.0], deviation=[1.0, 10.0, 100.0]
    )
    assert encoder(torch.full((1, 2, 2, 3), 203, dtype=torch.uint8))[0, 0].tolist() == pytest.approx([202, 20.1, 2])


def test_vgg_is_taken_after_the_last_relu_and_before_the_last_pooling(monkeypatch):
    with torch.device("meta"):  # shapes without values: VGG-19 has 144 million weights
        network = get_model("vgg19")
        monkeypatch.setattr(_api, "load_state_dict_from_url", lambda *_, **__: network.state_dict())
        trunk, mean, deviation = vgg19()
        maps = trunk(torch.empty(1, 3, 224, 224))
    size, stride = LAYERS["vgg19"]["conv5_4"]
    assert maps.shape == (1, size, 224 // stride, 224 // stride)
    assert [type(module) for module in trunk][-2:] == [nn.Conv2d, nn.ReLU]
    assert [sum(isinstance(module, kind) for module in trunk) for kind in (nn.Conv2d, nn.MaxPool2d)] == [16, 4]
    assert (mean, deviation) == (pytest.approx([123.675, 116.28, 103.53]), pytest.approx([58.395, 57.12, 57.375]))


@pytest.mark.parametrize("error", [URLError("no route"), RuntimeError("invalid hash value")])
def test_without_a_network_it_is_said_what_to_do(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(_api, "load_state_dict_from_url", fail)
    with pytest.raises(ReplicationError, match=r"weights of vgg19 .* or put the file of https://\S+ into \S+"):
        build_encoder(EncoderConfig(name="vgg19", layer="conv5_4"))


def test_standardised_values_have_mean_zero_and_deviation_one() -> None:
    network = nn.Conv2d(3, 5, kernel_size=16, stride=16)
    with torch.no_grad():
        network.weight[4], network.bias[4] = 0.0, 3.0  # the same everywhere
    encoder = ImageEncoder(network, layer=Layer(5, 16), side=64, pool=2, mean=[100.0] * 3, deviation=[50.0] * 3)
    images = torch.randint(0, 256, (12, 64, 64, 3), dtype=torch.uint8)
    plain = encoder(images)
    encoder.standardise(images.split(5))
    values = encoder(images).flatten(0, 1)
    torch.testing.assert_close(values[:, :4].mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(values[:, :4].std(0, correction=0), torch.ones(4), atol=1e-4, rtol=0)
    assert values[:, 4].abs().max() < 1e-5
    assert plain[..., 4].sub(3.0).abs().max() < 1e-5

    encoder.standardise(images.split(4))  # a second time starts from the plain values
    torch.testing.assert_close(encoder(images).flatten(0, 1), values, atol=1e-4, rtol=1e-4)
