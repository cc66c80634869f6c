"""From pixels to annotation vectors: encoders, one against a plain twin, files of features, places and boxes."""

import sys
from urllib.error import URLError

import matplotlib.cbook
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torchvision.models import _api, get_model

from shared.config import build
from shared.data.fetch import fetch
from shared.errors import ReplicationError
from shared.vision import features
from shared.vision.efficientnet_lite import DEVIATION, MEAN, EfficientNetLite0
from shared.vision.encoders import ImageEncoder, build_encoder, vgg19
from shared.vision.features import box_shares, centres_inside, compute_features, coverage, load_features
from shared.vision.settings import LAYERS, EncoderConfig, Layer
from tests.parity.fetched_packages import fetched, wheel_of
from tests.refused import assert_refused
from tests.vision.conftest import random_state


def random_images(*shape):
    return torch.randint(0, 256, (*shape, 3), dtype=torch.uint8)


@pytest.mark.parametrize(("settings", "message"), [
    ({"name": "efficientnet-lite1"}, "efficientnet-lite0"),
    ({"layer": "blok10"}, "efficientnet-lite0 has no layer 'blok10' .did you mean 'block10'"),
    ({"name": "vgg19"}, "vgg19 has no layer 'block10'"),
    ({"side": 225}, "'side' must be a multiple of 16"),
    ({"pool": 3}, "'side' must be a multiple of 48"),
    ({"pool": 0}, "pool"),
])  # fmt: skip
def test_what_no_encoder_can_be_is_refused(settings, message):
    with pytest.raises(ReplicationError, match=message):
        build(EncoderConfig, {"name": "efficientnet-lite0", "layer": "block10"} | settings, where="here")


@pytest.mark.parametrize(("layer", "pool"), [("block0", 1), ("block10", 1), ("block10", 2), ("block15", 1)])
def test_vectors_are_the_maps_of_the_whole_network_row_by_row(data, saved, layer, pool):
    encoder = build_encoder(EncoderConfig(name="efficientnet-lite0", layer=layer, side=64, pool=pool), data=data)
    images = random_images(2, 64, 64)
    found = encoder(images)
    network = EfficientNetLite0.load(saved)
    with torch.no_grad():
        maps = network.stem((images.permute(0, 3, 1, 2) - 127.0) / 128.0)
        for block in network.blocks[: int(layer.removeprefix("block")) + 1]:
            maps = block(maps)
    assert found.shape == (2, encoder.rows * encoder.columns, encoder.size)
    for row in range(encoder.rows):
        for column in range(encoder.columns):
            square = maps[:, :, row * pool : (row + 1) * pool, column * pool : (column + 1) * pool]
            place = found[:, row * encoder.columns + column]
            assert torch.allclose(place, square.mean((2, 3)), rtol=1e-4, atol=1e-4)


def test_an_encoder_is_frozen_and_in_evaluation_mode_and_has_no_norms_of_its_own(data):
    encoder = build_encoder(EncoderConfig(name="efficientnet-lite0", layer="block10"), data=data)
    assert not any(weights.requires_grad for weights in encoder.parameters())
    assert not any(module.training or isinstance(module, nn.BatchNorm2d) for module in encoder.modules())


def test_images_are_resized_as_a_whole():
    encoder = toy_encoder(pool=1)
    halves = torch.zeros(1, 16, 8, 3, dtype=torch.uint8)
    halves[:, :, 4:] = torch.tensor([10, 20, 30], dtype=torch.uint8)
    found = encoder(halves).view(4, 4, 3)
    assert torch.allclose(found[:, 0], torch.zeros(4, 3))
    assert torch.allclose(found[:, 3], torch.tensor([10.0, 20.0, 30.0]).expand(4, 3))
    assert torch.allclose(found, found[:1].expand(4, 4, 3))


def test_colours_are_normalised_one_by_one():
    scales = {"mean": [1.0, 2.0, 3.0], "deviation": [1.0, 10.0, 100.0]}
    encoder = ImageEncoder(nn.Identity(), layer=Layer(3, 1), side=2, pool=1, **scales)
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
    assert_refused(r"weights of vgg19 .* or put the file", build_encoder, EncoderConfig(name="vgg19", layer="conv5_4"))


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


PIXELS = np.random.default_rng(1).integers(0, 256, (7, 4, 4, 3), dtype=np.uint8)


def toy_encoder(scale=1.0, pool=2):
    """Mean colours of the four quarters, divided by ``scale``."""
    return ImageEncoder(nn.Identity(), layer=Layer(3, 1), side=4, pool=pool, mean=[0.0] * 3, deviation=[scale] * 3)


def images(indices):
    return PIXELS[list(indices)]


@pytest.mark.parametrize("batch", [None, 1, 3, 7, 100])
def test_what_is_read_is_what_the_encoder_says(tmp_path, batch):
    path = tmp_path / "new" / "train.npy"
    compute_features(toy_encoder(), images, len(PIXELS), path, batch=batch, label="toy")
    found = load_features(path)
    assert found.dtype == np.float16
    quarters = PIXELS.reshape(7, 2, 2, 2, 2, 3).mean((2, 4)).reshape(7, 4, 3)
    assert np.array_equal(found, quarters.astype(np.float16))
    assert [item.name for item in path.parent.iterdir()] == ["train.npy"]


@pytest.mark.parametrize(("scale", "shown"), [(1e-3, r"\d+"), (0.0, "nan|inf")])
def test_values_beyond_float16_are_refused_and_nothing_is_left(tmp_path, scale, shown):
    with pytest.raises(ReplicationError, match=f"has the value ({shown}).*, which float16 cannot hold"):
        compute_features(toy_encoder(scale), images, 7, tmp_path / "some.npy", label="toy")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "some.npy"
    compute_features(toy_encoder(), images, 2, path, label="toy")

    def fail(indices):
        raise ReplicationError("no photo.")

    assert_refused("no photo", compute_features, toy_encoder(), fail, 7, path, label="toy")
    assert len(load_features(path)) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_noticed_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(features.shutil, "disk_usage", lambda _: features.shutil._ntuple_diskusage(200, 33, 167))
    assert_refused(r"there are 0\.0 GB", compute_features, toy_encoder(), images, 7, tmp_path / "some.npy", label="toy")


def test_files_that_are_no_features_are_refused(tmp_path):
    path, said = tmp_path / "some.npy", r"cannot be read .* run the features stage again"
    for wrong in (np.zeros((2, 4, 3), np.float32), np.zeros((2, 4), np.float16)):
        np.save(path, wrong)
        assert_refused("not float16 of", load_features, path)
    for harm in (lambda: path.write_bytes(path.read_bytes()[:-2]), path.unlink):
        harm()
        assert_refused(said, load_features, path)


SIDE = 24  # pixels; so many that grids of 2, 3 and 4 places a side fall on them
sides = st.integers(0, SIDE)
two_sides = st.lists(sides, min_size=2, max_size=2, unique=True).map(sorted)
boxes_with_area = st.tuples(two_sides, two_sides).map(lambda ends: (ends[0][0], ends[1][0], ends[0][1], ends[1][1]))
grids = st.sampled_from([(1, 1), (2, 3), (3, 2), (4, 4), (4, 1)])


def pixels_inside(box, rows, columns):
    """How many pixels of each place are in the box."""
    image = np.zeros((SIDE, SIDE))
    left, top, right, bottom = box
    image[top:bottom, left:right] = 1
    tall, wide = SIDE // rows, SIDE // columns
    return image.reshape(rows, tall, columns, wide).sum(axis=(1, 3)).reshape(-1)


def shares(*boxes):
    return np.array(boxes) / SIDE


@given(boxes=st.lists(boxes_with_area, max_size=3), grid=grids)
def test_coverage_and_shares_are_those_of_the_pixels(boxes, grid):
    rows, columns = grid
    covered, split = coverage(shares(*boxes), *grid), box_shares(shares(*boxes), *grid)
    assert covered.shape == split.shape == (len(boxes), rows * columns)
    for box, of_places, of_box in zip(boxes, covered, split, strict=True):
        pixels = pixels_inside(box, rows, columns)
        assert of_places == pytest.approx(pixels * rows * columns / SIDE**2)
        assert of_box == pytest.approx(pixels / pixels.sum())


@given(box=boxes_with_area, grid=grids)
def test_a_centre_is_inside_where_its_pixels_are(box, grid):
    rows, columns = grid
    (left, top, right, bottom), inside = box, centres_inside(shares(box), rows, columns)[0]
    for place, found in enumerate(inside):
        y, x = (place // columns + 0.5) * SIDE / rows, (place % columns + 0.5) * SIDE / columns
        assert found == (left <= x <= right and top <= y <= bottom)


@pytest.mark.parametrize("box", [(0.2, 0.1, 0.2, 0.5), (0.1, 0.6, 0.9, 0.5), (0, 0, 24, 24), (-0.1, 0, 1, 1)])
@pytest.mark.parametrize("measure", [coverage, box_shares, centres_inside])
def test_what_is_no_box_within_the_image_is_refused(measure, box):
    with pytest.raises(ValueError, match="a box must have an area and lie inside"):
        measure([box], 2, 2)


STRIDES = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
MILITARY_UNIFORM = 652  # of ImageNet's classes
NAME = "efficientnet_lite_pytorch"
PACKAGE = wheel_of(
    "efficientnet-lite-pytorch==0.1.0",
    "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
    {f"{NAME}/": f"{NAME}/"},
)


def plain_network(state, images):
    """Scores, and the map after every block, straight from the tensors of the file."""

    def unit(x, weight, norm, stride=1, activated=True):
        kernel = state[weight].shape[-1]
        depthwise = state[weight].shape[1] == 1
        before, after = (kernel // 2, kernel // 2) if stride == 1 else ((kernel - 2) // 2, (kernel - 1) // 2)
        padded = F.pad(x, (before, after, before, after))
        x = F.conv2d(padded, state[weight], stride=stride, groups=x.shape[1] if depthwise else 1)
        statistics = (state[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
        x = F.batch_norm(x, *statistics, eps=1e-3)
        return x.clamp(0, 6) if activated else x

    maps, x = [], unit(images, "_conv_stem.weight", "_bn0", 2)
    for number, stride in enumerate(STRIDES):
        name, before = f"_blocks.{number}", x
        if f"{name}._expand_conv.weight" in state:
            x = unit(x, f"{name}._expand_conv.weight", f"{name}._bn0")
        x = unit(x, f"{name}._depthwise_conv.weight", f"{name}._bn1", stride)
        x = unit(x, f"{name}._project_conv.weight", f"{name}._bn2", activated=False)
        x = x + before if x.shape == before.shape else x
        maps.append(x)
    x = unit(x, "_conv_head.weight", "_bn1").mean((2, 3))
    return x @ state["_fc.weight"].T + state["_fc.bias"], maps


def stepwise(network, images):
    """The map after every block of ours."""
    maps, x = [], network.stem(images)
    for block in network.blocks:
        x = block(x)
        maps.append(x)
    return maps


def test_the_network_is_the_plain_one_in_every_block(saved):
    network, images = EfficientNetLite0.load(saved).double(), torch.randn(2, 3, 64, 64, dtype=torch.float64)
    state = {name: value.double() for name, value in random_state().items()}
    with torch.no_grad():
        scores, maps = plain_network(state, images)
        ours = stepwise(network, images)
        layers = LAYERS["efficientnet-lite0"].values()
        assert [m.shape[1:] for m in ours] == [(each.size, 64 // each.stride, 64 // each.stride) for each in layers]
        for found, expected in zip(ours, maps, strict=True):
            assert torch.allclose(found, expected)
            assert expected.std() > 0.1  # alive, so that the comparison means something
        assert torch.allclose(network(images), scores)


def test_the_size_is_that_of_the_published_network():
    assert sum(weights.numel() for weights in EfficientNetLite0().parameters()) == 4_652_008


class Harmful:
    """Loading it with pickle would run code."""

    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize("content", [{"_fc.weight": torch.zeros(2)}, Harmful(), [torch.zeros(1)], b"", "cut", None])
def test_a_file_that_does_not_hold_the_weights_is_refused_and_none_of_its_code_runs(content, saved, tmp_path, capsys):
    path = tmp_path / "some.pth"
    if content == "cut":
        path.write_bytes(saved.read_bytes()[:100_000])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    said = r"does not hold the weights of EfficientNet-lite0.* run the features stage, which fetches '.*' anew"
    assert_refused(said, EfficientNetLite0.load, path)
    assert capsys.readouterr().out == ""


@pytest.fixture
def weights(root):
    fetch("efficientnet_lite0", root=root / "data")
    return root / "data" / "efficientnet_lite0" / "efficientnet-lite0.pth"


@pytest.mark.registry
def test_values_are_those_of_the_package_that_the_weights_were_made_for(weights, tmp_path_factory, monkeypatch):
    monkeypatch.syspath_prepend(fetched(PACKAGE, [f"{NAME}/"], tmp_path_factory))
    reference = __import__(NAME).EfficientNet.from_name("efficientnet-lite0")
    reference.load_state_dict(torch.load(weights, weights_only=True))
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        monkeypatch.delitem(sys.modules, name)
    reference.eval()
    network, images = EfficientNetLite0.load(weights), torch.randn(2, 3, 224, 224)
    with torch.inference_mode():
        x = reference._swish(reference._bn0(reference._conv_stem(images)))
        for found, block in zip(stepwise(network, images), reference._blocks, strict=True):
            x = block(x)
            assert torch.allclose(found, x, rtol=1e-5, atol=1e-5)
        assert torch.allclose(network(images), reference(images), rtol=1e-5, atol=1e-5)


@pytest.mark.registry
def test_a_photo_is_recognised(weights):
    with Image.open(matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as photo:
        pixels = torch.from_numpy(np.array(photo.convert("RGB").resize((224, 224)), dtype=np.float32))
    with torch.inference_mode():
        scores = EfficientNetLite0.load(weights)((pixels.permute(2, 0, 1)[None] - MEAN) / DEVIATION)
    assert int(scores.argmax()) == MILITARY_UNIFORM  # on the rear admiral
