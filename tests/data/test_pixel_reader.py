"""Pictures of idx files and of CIFAR's, and MNIST as the registry gives it."""

import struct

import numpy as np
import pytest

from shared.data.readers import read

IDX = {"format": "idx", "train": ["a", "b"], "test": ["t"], "valid": 3}


def idx(images):
    return b"\0\0\x08\x03" + struct.pack(">3I", *images.shape) + images.tobytes()


def cifar(images):
    """Pictures (N, 32, 32, 3) with some classes, as CIFAR has them: a plane of each colour after the other."""
    labels = np.arange(len(images), dtype=np.uint8)[:, None]
    return np.hstack([labels, images.transpose(0, 3, 1, 2).reshape(len(images), -1)]).tobytes()


def numbered(*numbers, shape=(2, 3)):
    """Pictures that differ by their numbers."""
    rest = np.random.default_rng(0).integers(0, 256, (1, *shape))
    images = np.broadcast_to(rest, (len(numbers), *shape)).astype(np.uint8)
    images.reshape(len(numbers), -1)[:, 0] = numbers
    return images


def written(raw, options):
    corpus = read("pixels", raw, [], options)
    assert dict(corpus) == {}
    return {name.removesuffix(".images.npy"): np.load(path, allow_pickle=False) for name, path in corpus.files.items()}


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for name, numbers in {"a": (1, 2, 3), "b": (4, 5, 6, 7), "t": (8, 9)}.items():
        (folder / name).write_bytes(idx(numbered(*numbers)))
    return folder


def test_the_last_training_pictures_are_for_validation(raw):
    splits = written(raw, IDX)
    assert {name: images.shape for name, images in splits.items()} == {
        "test": (2, 2, 3, 1), "train": (4, 2, 3, 1), "valid": (3, 2, 3, 1)
    }  # fmt: skip
    assert all(images.dtype == np.uint8 for images in splits.values())
    assert {name: images[:, 0, 0, 0].tolist() for name, images in splits.items()} == {
        "test": [8, 9], "train": [1, 2, 3, 4], "valid": [5, 6, 7]
    }  # fmt: skip
    assert (splits["test"][..., 0] == numbered(8, 9)).all()


def test_no_picture_is_in_two_splits(raw):
    (raw / "a").write_bytes(idx(numbered(1, 1, 8)))
    (raw / "b").write_bytes(idx(numbered(6, 5, 9, 6)))
    splits = written(raw, IDX)
    assert {name: images[:, 0, 0, 0].tolist() for name, images in splits.items()} == {
        "test": [8, 9], "train": [1, 1], "valid": [5, 6]
    }  # fmt: skip


def test_cifar_has_its_colours_together_and_loses_its_classes(tmp_path):
    images = np.random.default_rng(3).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    for name, part in {"a": images[:2], "b": images[2:5], "t": images[5:]}.items():
        (tmp_path / name).write_bytes(cifar(part))
    splits = written(tmp_path, IDX | {"format": "cifar"})
    assert (np.concatenate([splits[name] for name in ("train", "valid", "test")]) == images).all()


def test_a_picture_with_its_class_is_a_text_of_grey_levels(tmp_path):
    """A margin of one pixel, squares of 2 x 2, whose means are rounded, and four levels of 64 values each."""
    image = np.full((1, 4, 6), 255, np.uint8)
    image[0, 1:3, 1:5] = [[0, 1, 100, 200], [2, 3, 255, 255]]
    for name in "at":
        (tmp_path / name).write_bytes(idx(np.concatenate([image, 255 - image])))
        (tmp_path / f"{name}c").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 2) + bytes([7, 3]))
    options = {"train": ["a", "ac"], "test": ["t", "tc"], "valid": 1, "margin": 1, "pool": 2, "levels": 4}
    corpus = read("pixel_texts", tmp_path, ["text", "label"], options)
    assert {split: [segment.texts for segment in corpus[split]] for split in ("train", "valid", "test")} == {
        "train": [("0 3", "7")], "valid": [("3 0", "3")], "test": [("0 3", "7"), ("3 0", "3")]
    }  # fmt: skip
