"""Features on disk are what the encoder says, whatever the batches; half a file never counts."""

import io

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from shared.errors import ReplicationError
from shared.vision import features
from shared.vision.encoders import ImageEncoder
from shared.vision.features import compute_features, load_features
from shared.vision.settings import Layer

PIXELS = np.random.default_rng(1).integers(0, 256, (7, 4, 4, 3), dtype=np.uint8)


def toy_encoder(scale=1.0):
    """Mean colours of the four quarters, divided by ``scale``."""
    return ImageEncoder(nn.Identity(), layer=Layer(3, 1), side=4, pool=2, mean=[0.0] * 3, deviation=[scale] * 3)


def images(indices):
    return PIXELS[list(indices)]


@pytest.mark.parametrize("batch", [None, 1, 3, 7, 100])
def test_what_is_read_is_what_the_encoder_says(tmp_path, batch):
    path = tmp_path / "new" / "train.npy"
    compute_features(toy_encoder(), images, len(PIXELS), path, batch=batch, label="toy")
    found = load_features(path)
    assert isinstance(found, np.memmap)
    assert found.dtype == np.float16
    assert not found.flags.writeable
    quarters = PIXELS.reshape(7, 2, 2, 2, 2, 3).mean((2, 4)).reshape(7, 4, 3)
    assert np.array_equal(found, quarters.astype(np.float16))
    assert [item.name for item in path.parent.iterdir()] == ["train.npy"]


def test_only_so_many_images_are_asked_for(tmp_path):
    asked = []

    def recorded(indices):
        asked.extend(indices)
        return images(indices)

    compute_features(toy_encoder(), recorded, 5, tmp_path / "some.npy", batch=2, label="toy")
    assert asked == list(range(5))
    assert load_features(tmp_path / "some.npy").shape == (5, 4, 3)


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

    with pytest.raises(ReplicationError, match="no photo"):
        compute_features(toy_encoder(), fail, 7, path, label="toy")
    assert len(load_features(path)) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_noticed_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(features.shutil, "disk_usage", lambda _: features.shutil._ntuple_diskusage(200, 33, 167))
    with pytest.raises(ReplicationError, match=r"there are 0\.0 GB of free disk; make room"):
        compute_features(toy_encoder(), images, 7, tmp_path / "some.npy", label="toy")  # of 168 bytes


def test_a_bar_is_shown_on_a_terminal_only(tmp_path, monkeypatch):
    for terminal in (True, False):
        out = io.StringIO()
        monkeypatch.setattr(
            features,
            "Console",
            lambda out=out, terminal=terminal: Console(file=out, force_terminal=terminal, width=120),
        )
        compute_features(toy_encoder(), images, 7, tmp_path / "some.npy", batch=2, label="toy pictures")
        assert [text in out.getvalue() for text in ("toy pictures", "100%")] == [terminal] * 2


@pytest.mark.parametrize("content", [None, b"", b"x" * 300, "cut"])
def test_files_that_are_no_features_are_refused(tmp_path, content):
    path = tmp_path / "some.npy"
    if content == "cut":
        compute_features(toy_encoder(), images, 7, path, label="toy")
        path.write_bytes(path.read_bytes()[:-2])
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ReplicationError, match=r"cannot be read .* run the features stage again"):
        load_features(path)


@pytest.mark.parametrize("array", [np.zeros((2, 4, 3), np.float32), np.zeros((2, 4), np.float16)])
def test_other_arrays_are_refused(tmp_path, array):
    np.save(tmp_path / "some.npy", array)
    with pytest.raises(ReplicationError, match="not float16 of"):
        load_features(tmp_path / "some.npy")


def test_the_encoder_runs_without_keeping_a_graph(tmp_path):
    seen = []

    class Recording(nn.Module):
        def forward(self, x):
            seen.append(torch.is_inference_mode_enabled())
            return x

    encoder = ImageEncoder(Recording(), layer=Layer(3, 1), side=4, pool=1, mean=[0.0] * 3, deviation=[1.0] * 3)
    compute_features(encoder, images, 7, tmp_path / "some.npy", label="toy")
    assert seen == [True, True]
