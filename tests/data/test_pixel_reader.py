"""Pictures with their classes as texts."""

import struct

import numpy as np

from shared.data.readers import read
from tests.data.odd import idx


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
