"""Photos in archives: their captions, their pixels, and what is missing or damaged."""

import json
import os

import numpy as np
import pytest
from PIL import Image
from test_archives import make_tar, make_zip
from test_odd_files import encoded

from shared.data.generated.scenes import SIDE
from shared.data.photos import LANGUAGES, Photos, PhotoSplit, decode
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError

HOMES = {"1.jpg": "train", "2.jpg": "train", "3.jpg": "val", "4.jpg": "test", "5.jpg": "restval"}
TEXTS = ["A Dog , no {} \n runs .", "Two  dogs", 'One "big" dog.', "", "It's a semi-big dog", "A dog"]


@pytest.fixture
def raw(tmp_path):
    """All photos in two archives, and captions in the forms of a table and of Karpathy."""
    folder = tmp_path / "raw"
    folder.mkdir()
    photo = encoded(np.zeros((8, 8, 3), np.uint8))
    make_tar(folder / "a.tar", {f"images/{name}": photo for name in ("1.jpg", "2.jpg", "5.jpg")})
    make_zip(folder / "b.zip", {"D/": b"", "__MACOSX/._3.jpg": b"x", "D/3.jpg": photo, "D/4.jpg": photo})
    rows, images = "image,caption\n", []
    for name, home in HOMES.items():
        own = [text.format(name) for text in TEXTS]
        rows += "".join(f'{name},"{text.replace(chr(34), chr(34) * 2)}"\n' for text in own)
        images.append({"filename": name, "split": home, "sentences": [{"raw": text, "tokens": []} for text in own]})
        with (folder / f"{home}.txt").open("a") as file:
            file.write(f"{name}\n")
    (folder / "captions.txt").write_text(rows)
    (folder / "dataset.json").write_text(json.dumps({"images": images}))
    return folder


LISTS = {"train": "train.txt", "valid": "val.txt", "test": "test.txt"}
TABLE = {"captions": ["captions.txt", "dataset.json"], "splits": LISTS}
JSON = {"captions": ["none", "dataset.json"], "words": r"\w+(?:-\w+)*|[^\w\s]", "at_most": 4}


@pytest.mark.parametrize(
    ("options", "captions"),
    [
        (TABLE, ["a dog , no 4.jpg runs .", "two dogs", 'one "big" dog.', "it's a semi-big dog", "a dog"]),
        (JSON, ["a dog , no 4 . jpg runs .", "two dogs", 'one " big " dog .', "it ' s a semi-big dog"]),
    ],
)
def test_captions_are_words_in_lower_case_and_what_the_paper_left_out_is_in_no_split(raw, options, captions):
    corpus = read("photos", raw, LANGUAGES, options)
    found = {split: [segment.texts[1] for segment in segments] for split, segments in corpus.items()}
    assert found == {"train": ["1.jpg", "2.jpg"], "valid": ["3.jpg"], "test": ["4.jpg"]}
    assert json.loads(corpus["test"][0].texts[0]) == captions
    assert {name: path.read_bytes() for name, path in corpus.files.items()} == {
        name: (raw / name).read_bytes() for name in ("a.tar", "b.zip")
    }


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


def test_every_file_of_an_archive_is_read_whole(tmp_path):
    contents = {f"{name}{i}": os.urandom(1 + 700 * i) for i in range(4) for name in ("x/", "y/z", "")}
    make_tar(tmp_path / "a.tar", {f"t{name}": content for name, content in contents.items()})
    make_zip(tmp_path / "b.zip", {f"z{name}": content for name, content in contents.items()})
    files = Photos([tmp_path / "a.tar", tmp_path / "b.zip"])
    assert all(files.read(f"{kind}{name}") == content for kind in "tz" for name, content in contents.items())


def test_photos_that_are_missing_or_damaged_are_named(raw, tmp_path):
    (folder := tmp_path / "files").mkdir()
    write_corpus(read("photos", raw, LANGUAGES, TABLE), LANGUAGES, folder, compared=["photo"])
    assert PhotoSplit.load(folder, "valid").images([0]).shape == (1, SIDE, SIDE, 3)
    (folder / "a.tar").unlink()
    with pytest.raises(ReplicationError, match=r"in no archive: 1, among them 2\.jpg; fetch"):
        PhotoSplit.load(folder, "train").images([1])
    make_zip(folder / "b.zip", {"3.jpg": encoded(np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8))[:90]})
    with pytest.raises(ReplicationError, match=r"the photo 3\.jpg cannot be read .* fetch it anew"):
        PhotoSplit.load(folder, "valid").images([0])
