"""Random weights where those of EfficientNet-lite0 are fetched to."""

import pytest
import torch

from tests.vision.efficientnet_weights import random_state


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
