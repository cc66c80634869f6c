"""Random weights under the names and in the shapes of EfficientNet-lite0's file, where it is fetched to."""

import pytest
import torch


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A data folder with random weights in it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "efficientnet_lite0").mkdir()
    torch.save(random_state(), folder / "efficientnet_lite0" / "efficientnet-lite0.pth")
    return folder


@pytest.fixture(scope="session")
def saved(data):
    """Their file."""
    return data / "efficientnet_lite0" / "efficientnet-lite0.pth"


BLOCKS = [  # kernel, channels in, channels inside, channels out
    (3, 32, 32, 16), (3, 16, 96, 24), (3, 24, 144, 24), (5, 24, 144, 40), (5, 40, 240, 40), (3, 40, 240, 80),
    (3, 80, 480, 80), (3, 80, 480, 80), (5, 80, 480, 112), (5, 112, 672, 112), (5, 112, 672, 112),
    (5, 112, 672, 192), (5, 192, 1152, 192), (5, 192, 1152, 192), (5, 192, 1152, 192), (3, 192, 1152, 320),
]  # fmt: skip


def random_state():
    """A name to a tensor; such that values neither vanish nor grow from block to block."""
    generator, state = torch.Generator().manual_seed(1), {}

    def convolution(name, *shape):
        spread = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        state[f"{name}.weight"] = torch.randn(*shape, generator=generator) * spread

    def norm(name, width):
        state[f"{name}.weight"] = 0.5 + torch.rand(width, generator=generator)
        state[f"{name}.bias"] = torch.randn(width, generator=generator) / 2
        state[f"{name}.running_mean"] = torch.randn(width, generator=generator) / 2
        state[f"{name}.running_var"] = 0.5 + torch.rand(width, generator=generator)
        state[f"{name}.num_batches_tracked"] = torch.tensor(7)

    convolution("_conv_stem", 32, 3, 3, 3)
    norm("_bn0", 32)
    for number, (kernel, channels, inner, width) in enumerate(BLOCKS):
        block = f"_blocks.{number}"
        if inner > channels:
            convolution(f"{block}._expand_conv", inner, channels, 1, 1)
            norm(f"{block}._bn0", inner)
        convolution(f"{block}._depthwise_conv", inner, 1, kernel, kernel)
        norm(f"{block}._bn1", inner)
        convolution(f"{block}._project_conv", width, inner, 1, 1)
        norm(f"{block}._bn2", width)
    convolution("_conv_head", 1280, 320, 1, 1)
    norm("_bn1", 1280)
    state["_fc.weight"] = torch.randn(1000, 1280, generator=generator) / 36
    state["_fc.bias"] = torch.randn(1000, generator=generator)
    return state
