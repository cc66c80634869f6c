"""What tests of variants share."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def shapes_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At the root, on the device that holds no numbers: no size is too large."""
    import torch

    monkeypatch.chdir(root)
    with torch.device("meta"):
        yield
