"""Photos in archives with captions of either form, and Flickr8k where a mirror has it."""

import io
import json
import os

import numpy as np
import pytest
from PIL import Image
from test_archives import make_tar, make_zip

from shared.data.generated.scenes import SIDE
from shared.data.photos import LANGUAGES, Photos, PhotoSplit, decode
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError

HOME = {"1.jpg": "train", "2.jpg": "train", "3.jpg": "valid", "4.jpg": "test", "5.jpg": "restval"}
TEXTS = {
    name: [f"A Dog , no {name} \n runs .", "Two  dogs", 'One "big" dog.', "", "It's a semi-big dog", "A dog"]
    for name in HOME
}
KARPATHY = {"train": "train", "valid": "val", "test": "test", "restval": "restval"}
TABLE = {
    "captions": ["captions.txt", "dataset.json"],
    "splits": {split: f"{split}.txt" for split in ("train", "valid", "test")},
}
JSON = {"captions": ["captions.txt", "dataset.json"], "words": r"\w+(?:-\w+)*|[^\w\s]"}


def picture(name, size=(SIDE, SIDE), kind="PNG"):
    """A plain picture whose colour is the number in its name."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (10 * int(name[0]), 20, 30)).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture
def raw(tmp_path):
    """All photos in two archives, and no captions yet."""
    folder = tmp_path / "raw"
    folder.mkdir()
    make_tar(folder / "a.tar", {f"images/{name}": picture(name) for name in ("1.jpg", "2.jpg", "5.jpg")})
    others = {f"Dataset/{name}": picture(name) for name in ("3.jpg", "4.jpg")}
    make_zip(folder / "b.zip", {"Dataset/": b"", "__MACOSX/._3.jpg": b"x"} | others)
    return folder


@pytest.fixture
def table(raw):
    rows = [f'{name},"{text.replace(chr(34), chr(34) * 2)}"\n' for name, texts in TEXTS.items() for text in texts]
    (raw / "captions.txt").write_text("image,caption\n" + "".join(rows), encoding="utf-8")
    for split in {*HOME.values()}:
        names = [name for name, home in HOME.items() if home == split]
        (raw / f"{split}.txt").write_text("\n".join(names), encoding="utf-8")
    return raw


@pytest.fixture
def karpathy(raw):
    images = [
        {
            "filename": name,
            "split": KARPATHY[home],
            "imgid": 0,
            "sentences": [{"raw": text, "tokens": []} for text in TEXTS[name]],
        }
        for name, home in HOME.items()
    ]
    (raw / "dataset.json").write_text(json.dumps({"images": images, "dataset": "toy"}), encoding="utf-8")
    return raw


@pytest.fixture
def fetched(table, tmp_path):
    folder = tmp_path / "fetched"
    folder.mkdir()
    write_corpus(read("photos", table, LANGUAGES, TABLE), LANGUAGES, folder, compared=["photo"])
    return folder


def found(corpus):
    return {
        split: {segment.texts[1]: json.loads(segment.texts[0]) for segment in segments}
        for split, segments in corpus.items()
    }


def test_a_table_with_lists_gives_lower_case_words_as_they_stand(table):
    corpus = read("photos", table, LANGUAGES, TABLE)
    splits = found(corpus)
    assert {split: list(photos) for split, photos in splits.items()} == {
        "train": ["1.jpg", "2.jpg"], "valid": ["3.jpg"], "test": ["4.jpg"]
    }  # fmt: skip
    assert splits["test"]["4.jpg"] == [
        "a dog , no 4.jpg runs .", "two dogs", 'one "big" dog.', "it's a semi-big dog", "a dog"
    ]  # fmt: skip


def test_karpathys_file_gives_words_as_the_card_says_and_not_what_the_paper_left_out(karpathy):
    splits = found(read("photos", karpathy, LANGUAGES, JSON | {"at_most": 4}))
    assert {split: list(photos) for split, photos in splits.items()} == {
        "train": ["1.jpg", "2.jpg"], "valid": ["3.jpg"], "test": ["4.jpg"]
    }  # fmt: skip
    assert splits["valid"]["3.jpg"] == [
        "a dog , no 3 . jpg runs .", "two dogs", 'one " big " dog .', "it ' s a semi-big dog"
    ]  # fmt: skip


def test_a_photo_of_the_right_size_is_not_touched():
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    assert (decode(buffer.getvalue()) == pixels).all()
    grey = io.BytesIO()
    Image.fromarray(pixels[..., 0]).save(grey, "PNG")
    assert (decode(grey.getvalue()) == pixels[..., :1]).all()


@pytest.mark.parametrize("turned", [False, True])
def test_another_size_is_scaled_to_256_and_the_middle_cut_out(turned):
    """A picture that is as wide as 512 pixels and as high as 256, in which a pixel's column is its place."""
    columns = np.linspace(0, 255, 512).astype(np.uint8)
    pixels = np.broadcast_to(columns[None, :, None], (256, 512, 3)).copy()
    pixels = pixels.transpose(1, 0, 2) if turned else pixels
    large = Image.fromarray(np.ascontiguousarray(pixels)).resize((512, 1024) if turned else (1024, 512))
    buffer = io.BytesIO()
    large.save(buffer, "PNG")
    image = decode(buffer.getvalue()).astype(int)
    image = image.transpose(1, 0, 2) if turned else image
    middle = columns[144 : 144 + SIDE].astype(int)
    assert image.shape == (SIDE, SIDE, 3)
    assert np.abs(image - middle[None, :, None]).max() <= 1


def test_every_file_of_an_archive_is_read_whole(tmp_path):
    contents = {f"{name}{i}": os.urandom(1 + 700 * i) for i in range(4) for name in ("x/", "y/z", "")}
    make_tar(tmp_path / "a.tar", {f"t{name}": content for name, content in contents.items()})
    make_zip(tmp_path / "b.zip", {f"z{name}": content for name, content in contents.items()})
    files = Photos([tmp_path / "a.tar", tmp_path / "b.zip"])
    assert all(files.read(f"{kind}{name}") == content for kind in "tz" for name, content in contents.items())


def test_photos_in_no_archive_are_counted(table, fetched):
    (table / "a.tar").unlink()
    with pytest.raises(ReplicationError, match=r"in no archive: 2, among them 1\.jpg; fetch"):
        read("photos", table, LANGUAGES, TABLE)
    (fetched / "a.tar").unlink()
    with pytest.raises(ReplicationError, match=r"in no archive: 1, among them 2\.jpg; fetch"):
        PhotoSplit.load(fetched, "train").images([1])


def test_damaged_archives_and_photos_are_named(table, fetched):
    make_zip(fetched / "b.zip", {"3.jpg": picture("3")[:60]})
    with pytest.raises(ReplicationError, match=r"the photo 3\.jpg cannot be read .* fetch it anew"):
        PhotoSplit.load(fetched, "valid").images([0])
    for name in ("a.tar", "b.zip"):
        (table / name).write_bytes(b"neither" * 300)
        with pytest.raises(ReplicationError, match=rf"{name} cannot be read .* fetch it anew"):
            read("photos", table, LANGUAGES, TABLE)
        (table / name).unlink()
