"""From pixels to annotation vectors: values, files of features, places and boxes, and what is refused."""

from urllib.error import URLError

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torchvision.models import _api, get_model

from shared.config import build
from shared.errors import ReplicationError
from shared.vision import features
from shared.vision.efficientnet_lite import EfficientNetLite0
from shared.vision.encoders import ImageEncoder, build_encoder, vgg19
from shared.vision.features import box_shares, centres_inside, compute_features, coverage, load_features
from shared.vision.settings import LAYERS, EncoderConfig, Layer
from tests.refused import assert_refused


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
