"""Photos in archives: their captions, their pixels, and what is missing or damaged."""

import json

import numpy as np
import pytest
from PIL import Image

from shared.data.generated.scenes import SIDE
from shared.data.photos import LANGUAGES, PhotoSplit, decode
from shared.data.readers import read
from shared.data.splits import write_corpus
from tests.data.odd import archive, described, encoded
from tests.refused import assert_refused

TEXTS = ["A Dog , no 4.jpg \n runs .", "Two  dogs", 'One "big" dog.', "", "It's a semi-big dog", "A dog"]
JSON = {"captions": ["none", "dataset.json"], "words": r"\w+(?:-\w+)*|[^\w\s]", "at_most": 4}


def test_captions_are_words_in_lower_case_and_photos_are_missed_by_name(tmp_path):
    photo = encoded(np.zeros((8, 8, 3), np.uint8))
    archive(tmp_path / "a.tar", [(f"images/{name}", photo) for name in ("1", "2", "5")])
    archive(tmp_path / "b.zip", [("D/", b""), ("__MACOSX/._3", b"x"), ("D/3", photo), ("D/4", photo)])
    homes = {"1": "train", "2": "train", "3": "val", "4": "test", "5": "restval"}  # the paper leaves the last one out
    (tmp_path / "dataset.json").write_text(described((name, home, TEXTS) for name, home in homes.items()))
    corpus = read("photos", tmp_path, LANGUAGES, JSON)
    found = {split: [segment.texts[1] for segment in segments] for split, segments in corpus.items()}
    assert found == {"train": ["1", "2"], "valid": ["3"], "test": ["4"]}
    captions = ["a dog , no 4 . jpg runs .", "two dogs", 'one " big " dog .', "it ' s a semi-big dog"]
    assert json.loads(corpus["test"][0].texts[0]) == captions
    (folder := tmp_path / "files").mkdir()
    write_corpus(corpus, LANGUAGES, folder, compared=["photo"])
    assert PhotoSplit.load(folder, "valid").images([0]).shape == (1, SIDE, SIDE, 3)
    (folder / "a.tar").unlink()
    assert_refused(r"in no archive: 1, among them '2' of the split;", PhotoSplit.load(folder, "train").images, [1])
    archive(folder / "b.zip", [("3", photo[:40])])
    assert_refused(r"the photo 3 cannot be read .* fetch it anew", PhotoSplit.load(folder, "valid").images, [0])


def test_a_photo_of_the_right_size_is_not_touched():
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    assert (decode(encoded(pixels)) == pixels).all()
    assert (decode(encoded(pixels[..., 0])) == pixels[..., :1]).all()


@pytest.mark.parametrize("turned", [False, True])
def test_another_size_is_scaled_to_256_and_the_middle_cut_out(turned):
    """A picture that is as wide as 512 pixels and as high as 256, in which a pixel's column is its place."""
    columns = np.linspace(0, 255, 512).astype(np.uint8)
    pixels = np.broadcast_to(columns[None, :, None], (256, 512, 3)).copy()
    pixels = pixels.transpose(1, 0, 2) if turned else pixels
    large = Image.fromarray(np.ascontiguousarray(pixels)).resize((512, 1024) if turned else (1024, 512))
    image = decode(encoded(np.asarray(large))).astype(int)
    image = image.transpose(1, 0, 2) if turned else image
    assert image.shape == (SIDE, SIDE, 3)
    assert np.abs(image - columns[144 : 144 + SIDE].astype(int)[None, :, None]).max() <= 1


@pytest.mark.parametrize(("members", "listed", "said"), [
    (["x/1.png", "y/1.png"], ["1.png"] * 3, r"several photos are called .1\.png. of .*; write the folder before"),
    (["x/1.png"], ["1.png", "1.png", "x/1.png"], r"the photo 1\.png stands there twice"),
    (["x/1.png"], ["1.png", "e\u0301.png", "\u00e9.png"], "in no archive: 2"),
])  # fmt: skip
def test_a_photo_is_asked_for_once_and_with_the_folder_that_tells_it_from_others(tmp_path, members, listed, said):
    archive(tmp_path / "a.zip", [(name, encoded(np.zeros((4, 4), np.uint8))) for name in members])
    homes = ("train", "train" if "twice" in said else "val", "test")
    (tmp_path / "d.json").write_text(described(zip(listed, homes, ["a"] * 3, strict=True)))
    assert_refused(said, read, "photos", tmp_path, ("captions", "photo"), {"captions": ["d.json"]})
