"""EfficientNet-lite0 against a plain twin that reads the weights' file by its names, and against the original."""

import sys

import matplotlib.cbook
import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from shared.data.fetch import fetch
from shared.vision.efficientnet_lite import DEVIATION, MEAN, EfficientNetLite0
from shared.vision.settings import LAYERS
from tests.parity.fetched_packages import fetched, wheel_of
from tests.refused import assert_refused
from tests.vision.efficientnet_weights import random_state

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
