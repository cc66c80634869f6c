"""The generated pictures, and that they are read as fetched ones are."""

import io
import itertools

import numpy as np
import pytest

from shared.data.cards import load_card
from shared.data.fetch import fetch
from shared.data.generated import generate
from shared.tasks.sequences.corpus import PreparedSequences, prepare
from shared.tasks.sequences.settings import PixelCorpusConfig

SPLITS = {"test": 5, "valid": 4, "train": 30}


def values(**changes):
    return {"seed": 1, "side": 12, "strokes": 2, "splits": SPLITS} | changes


def drawn(**changes):
    files = generate("pictures", values(**changes)).files
    return {name.removesuffix(".images.npy"): np.load(io.BytesIO(file)) for name, file in files.items()}


@pytest.fixture(scope="module")
def shipped(pytestconfig, tmp_path_factory):
    """The folder that the shipped card makes; fetching compares the hashes."""
    root = tmp_path_factory.mktemp("data")
    card = (pytestconfig.rootpath / "data/generated_pictures.yaml").read_text(encoding="utf-8")
    (root / "generated_pictures.yaml").write_text(card, encoding="utf-8")
    made = fetch("generated_pictures", root=root).files
    assert made.keys() == load_card("generated_pictures", root).files.keys()
    return root / "generated_pictures"


def test_they_are_prepared_as_digits_are_and_differ_even_when_made_smaller_and_coarser(shipped, tmp_path):
    config = PixelCorpusConfig(dataset="generated_pictures", pool=4, levels=16, images={"train": 24})
    summary = prepare(config, shipped, tmp_path)
    assert summary["splits"] == {
        "train": {"images": 24}, "valid": {"images": 6, "in_train": 0}, "test": {"images": 9, "in_train": 0}
    }  # fmt: skip
    assert summary["shape"] == (7, 7, 1)
    pixels = PreparedSequences.load(config, tmp_path).split("train").batch(np.arange(24)).targets.numpy()
    assert len(np.unique(pixels)) == 16  # every level can be learned
    assert 0.2 < (pixels == 0).mean() < 0.8


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
