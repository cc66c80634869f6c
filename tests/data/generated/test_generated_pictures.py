"""The generated pictures, and that they are read as fetched ones are."""

import io
import itertools

import numpy as np
from test_generators import SMALL

from shared.data.generated import generate


def drawn(**changes):
    files = generate("pictures", SMALL["pictures"] | changes).files
    return {name.removesuffix(".images.npy"): np.load(io.BytesIO(file)) for name, file in files.items()}


def test_all_but_the_strokes_is_black_and_strokes_are_neither_faint_nor_thin():
    for image in drawn(strokes=1)["train"]:
        greys = np.unique(image)
        assert greys[0] == 0
        assert len(greys) == 2
        assert greys[1] >= 128
        rows, columns, _ = np.nonzero(image)
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert min(height, width) >= 3
        assert len(rows) >= 3 * max(height, width)


def test_strokes_go_from_place_to_place_without_a_gap():
    for image in drawn(strokes=1)["train"]:
        for axis in (0, 1):
            touched = np.flatnonzero(image[..., 0].any(axis))
            assert all(later - earlier == 1 for earlier, later in itertools.pairwise(touched))
