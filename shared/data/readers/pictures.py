"""Pictures: photos in archives with their captions, and pixels in idx files, as of MNIST, or the files of CIFAR-10."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shared.config import Strict
from shared.data.cards import SafePath
from shared.data.opening import first_of, form_of, listed, read_bytes, read_json, read_picture, reading, text_lines
from shared.data.photos import Photos, archives
from shared.data.readers.texts import TABULAR, records, text_of
from shared.data.splits import EQUAL, Accompanied, Corpus, LeftOut, Segment
from shared.errors import ReplicationError

Images = NDArray[np.uint8]
"""(N, height, width, channels)."""
_Described = dict[str, dict[str, list[str]]]
"""Split to its photos, each with its captions."""

_KARPATHY = {"train": "train", "val": "valid", "test": "test"}  # the part "restval" is in no split
# Their escapes in JSON end in a letter, which a mark behind it would join.
_CONTROLS = dict.fromkeys(map(ord, "\b\x0e\x0f\x1a\x1b"), " ")
_CIFAR_PLANES = (3, 32, 32)


class PhotosOptions(Strict):
    r"""Options of the reader ``photos``.

    Attributes:
        captions: possible names of the file of captions; the first that exists is read.
        pictures: the folder of the photos, if they are not in archives.
        fields: of ``image`` and ``caption`` to the columns of the table, if their names differ.
        columns: names of the columns of a table whose first line does not have them.
        splits: split name to the file with the list of its photos, for captions in a table; none: all are train.
        words: a regular expression that matches the words and signs of a caption; other characters separate them.
        at_most: largest number of captions per photo; the first ones are kept.
    """

    captions: list[SafePath] = Field(min_length=1)
    pictures: SafePath | None = None
    fields: dict[Literal["image", "caption"], str] = Field(default_factory=dict)
    columns: tuple[str, ...] = ()
    splits: dict[str, SafePath] = Field(default_factory=dict)
    words: re.Pattern[str] = re.compile(r"\S+")
    at_most: int = Field(default=5, ge=1)


def read_photos(raw: Path, languages: Sequence[str], options: PhotosOptions) -> Corpus:
    """Photos in archives, with captions in a table and a list per split, or with both in a file of Karpathy.

    Captions are in lower case, with spaces between words and signs. The raw files are tar and zip archives, which are
    copied unchanged, or a folder, which becomes a tar archive, and the captions: a table (``image,caption`` per line;
    with the suffixes ``.tsv`` and ``.jsonl`` one of tabs, or records) with a list of photos per split, or, with the
    suffix ``.json``, a file of Karpathy, which has the splits too.

    Raises:
        ReplicationError: a file is not the expected one, or a photo has no captions or is in no archive.
    """
    path = first_of(raw, options.captions)
    with reading(path.name):
        described, places = (_karpathy(path), {}) if form_of(path) == ".json" else _listed(path, raw, options)
    packed = archives(raw) if options.pictures is None else [_packed(raw / options.pictures, raw)]
    found = Photos(packed)
    found.check({photo: places.get(photo, path.name) for photos in described.values() for photo in photos})
    corpus: dict[str, list[Segment | str]] = {split: [] for split in described}
    for split, name, captions in ((split, *photo) for split, photos in described.items() for photo in photos.items()):
        with reading(path.name):
            segment = _segment(name, captions, options, places.get(name, path.name))
        if options.pictures:
            content = found.read(name)
            with reading(f"the photo {name}"):
                read_picture(content)
            # By its content, so that no draw puts copies into two splits.
            segment = segment._replace(key=hashlib.sha256(content).hexdigest())
            more = len(captions) - len(json.loads(segment.texts[0]))
            corpus[split] += [f"a caption is empty, or its photo has {options.at_most} before it"] * more
        corpus[split].append(segment)
    if options.pictures and not options.splits:
        corpus["train"] += ["a photo has no caption"] * found.others(described["train"])
    return Accompanied(corpus, {archive.name: archive for archive in packed})


def _listed(path: Path, raw: Path, options: PhotosOptions) -> tuple[_Described, dict[str, str]]:
    """Return the captions of each photo of each split, from a table and the lists of the splits; and photos' places."""
    captions: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    image, caption = (options.fields.get(name, name) for name in ("image", "caption"))
    form = form_of(path)
    for place, row in records(path, options.columns, form if form in TABULAR else ".csv"):
        name = text_of(row, image, place)
        captions.setdefault(name, []).append(text_of(row, caption, place))
        places.setdefault(name, place)
    chosen: _Described = {split: {} for split in options.splits} or {"train": captions}
    for split, listing in options.splits.items():
        for number, photo in enumerate(text_lines(first_of(raw, [listing])), start=1):
            if photo:
                chosen[split][photo] = captions.get(photo, [])
                places.setdefault(photo, f"{listing}, line {number}")
    return chosen, places


def _packed(folder: Path, raw: Path) -> Path:
    """Pack the pictures of a folder: all its files but tables and those whose names begin with a dot.

    The archive lies in a folder of its own: a raw file of its name may be a link to a file of the user's.
    """
    with tarfile.open(target := Path(tempfile.mkdtemp(dir=raw), "pictures.tar"), "w") as tar:
        for path in listed(folder, "**/*"):
            if path.is_file() and form_of(path) not in TABULAR:
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                content = read_bytes(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return target


def _karpathy(path: Path) -> _Described:
    """Return the captions of each photo of each split, from ``dataset_<name>.json`` (Karpathy & Fei-Fei 2015)."""
    splits: _Described = {split: {} for split in _KARPATHY.values()}
    for image in read_json(path)["images"]:
        if split := _KARPATHY.get(image["split"]):
            if image["filename"] in splits[split]:  # as those of two folders may be
                raise ValueError(f"the photo {image['filename']} stands there twice")
            splits[split][image["filename"]] = [sentence["raw"] for sentence in image["sentences"]]
    return splits


def _segment(photo: str, captions: Sequence[str], options: PhotosOptions, place: str) -> Segment:
    found = (options.words.finditer(text.lower().translate(_CONTROLS)) for text in captions)
    texts = [text for words in found if (text := " ".join(word[0] for word in words))]
    if not texts:
        raise ReplicationError(f"{place}: the photo {photo} has no caption; write one, or take it out.")
    return Segment((json.dumps(texts[: options.at_most], ensure_ascii=False), photo))


class PixelsOptions(Strict):
    """Options of the reader ``pixels``.

    Attributes:
        format: format of the files.
        train: files with the training pictures, in this order.
        test: files with the test pictures.
        valid: number of training pictures, from the end, that become the validation split.
    """

    format: Literal["idx", "cifar"]
    train: tuple[SafePath, ...] = Field(min_length=1)
    test: tuple[SafePath, ...] = Field(min_length=1)
    valid: int = Field(gt=0)


def read_pixels(raw: Path, languages: Sequence[str], options: PixelsOptions) -> Accompanied:
    """Pictures as pixels, from idx files, as of MNIST, or the binary files of CIFAR-10.

    Every split is a file ``<split>.images.npy``: (N, height, width, channels) uint8, without classes. The corpus has no
    splits of text lines, only these files. No picture is in two splits: a picture of train is left out if valid or test
    has an equal one, and a picture of valid if test has one.

    Raises:
        ReplicationError: a file has another format, or there are too few pictures.
    """
    form = _idx if options.format == "idx" else _cifar
    train, test = (_joined(raw, names, form) for names in (options.train, options.test))
    splits = {"test": test} | _parted(train, options.valid)
    folder = Path(tempfile.mkdtemp(dir=raw))
    seen: set[bytes] = set()
    left_out: LeftOut = Counter()
    for split, images in splits.items():
        hashes = [hashlib.sha256(image).digest() for image in images]
        fresh = [own not in seen for own in hashes]
        if not any(fresh):
            files = ", ".join(options.test if split == "test" else options.train)
            raise ReplicationError(
                f"{files}: the split '{split}' came out empty, as others have its pictures; give more pictures, or "
                "correct 'reader.options'."
            )
        np.save(folder / f"{split}.images.npy", images[fresh], allow_pickle=False)
        left_out[split, EQUAL] += fresh.count(False)
        seen.update(hashes)
    return Accompanied({}, {path.name: path for path in listed(folder)}, left_out)


def _parted(train: Any, valid: int) -> dict[str, Any]:
    """Take the validation split from the end of the training pictures."""
    if valid >= len(train):
        raise ReplicationError(f"of {len(train)} training pictures {valid} cannot become valid; correct the card.")
    return {"valid": train[-valid:], "train": train[:-valid]}


def _joined(raw: Path, names: Sequence[str], form: Callable[[bytes], Images]) -> Images:
    parts = []
    for name in names:
        with reading(name):
            parts.append(form(read_bytes(first_of(raw, [name]))))
    if len({part.shape[1:] for part in parts}) > 1:
        raise ReplicationError(f"the pictures of {' and '.join(names)} differ in size; correct the card.")
    return np.ascontiguousarray(np.concatenate(parts))


def _idx(content: bytes, axes: int = 3) -> Images:
    """Read idx: a magic number of four bytes, big-endian sizes, and the grey values of all pictures by rows.

    One axis is of classes, which become pictures of one pixel.
    """
    if content[:4] != bytes((0, 0, 8, axes)):
        raise ValueError(f"it does not begin as an idx file of bytes with {'three axes' if axes == 3 else 'one axis'}")
    sizes = [int.from_bytes(content[4 * axis : 4 * axis + 4], "big") for axis in range(1, axes + 1)]
    values = np.frombuffer(content, np.uint8)[4 + 4 * axes :]
    if not len(values) or len(values) != math.prod(sizes):
        raise ValueError("it is longer or shorter than it says itself")
    return values.reshape(*sizes, *[1] * (4 - axes))


def _cifar(content: bytes) -> Images:
    """Read CIFAR-10: for each picture one byte with its class, then one plane per colour, row by row."""
    values = np.frombuffer(content, np.uint8)
    size = 1 + math.prod(_CIFAR_PLANES)
    if not len(values) or len(values) % size:
        raise ValueError(f"it does not consist of pictures of {size:,} bytes")
    return values.reshape(-1, size)[:, 1:].reshape(-1, *_CIFAR_PLANES).transpose(0, 2, 3, 1)


class PixelTextsOptions(Strict):
    """Options of the reader ``pixel_texts``.

    Attributes:
        train, test: the idx files of a split: of its pictures, and of their classes.
        valid: number of training pictures, from the end, that become the validation split.
        margin: pixels that are cut off on every side.
        pool: side of the squares whose mean, rounded, becomes one pixel.
        levels: grey levels of a pixel, equal parts of 0 to 255.
    """

    train: tuple[SafePath, SafePath]
    test: tuple[SafePath, SafePath]
    valid: int = Field(gt=0)
    margin: int = Field(default=0, ge=0)
    pool: int = Field(default=1, ge=1, le=16)
    levels: int = Field(default=256, ge=2, le=256)


def read_pixel_texts(raw: Path, languages: Sequence[str], options: PixelTextsOptions) -> Corpus:
    """Grey pictures with their classes as texts of pixels, row by row, a word for each grey level: ``0 0 3 1 …``.

    Raises:
        ReplicationError: a file has another format, pictures and classes differ in number, there are too few pictures
            for validation, or pictures cannot be parted into squares.
    """
    train, test = (list(_classified(raw, files, options)) for files in (options.train, options.test))
    return _parted(train, options.valid) | {"test": test}


def _classified(raw: Path, files: tuple[str, str], options: PixelTextsOptions) -> Iterator[Segment]:
    images = _joined(raw, files[:1], _idx)[..., 0]
    classes = _joined(raw, files[1:], partial(_idx, axes=1)).ravel()
    height, width = (size - 2 * options.margin for size in images.shape[1:])
    if len(images) != len(classes) or min(height, width) < 1 or height % options.pool or width % options.pool:
        raise ReplicationError(
            f"{files[0]} has {len(images)} pictures, {files[1]} {len(classes)} classes, and {height} x {width} pixels "
            f"inside of the margin are to be parted into squares of {options.pool}; correct the card."
        )
    inside = images[:, options.margin :, options.margin :][:, :height, :width].astype(np.uint16)
    squares = inside.reshape(len(images), height // options.pool, options.pool, width // options.pool, options.pool)
    means = (squares.sum(axis=(2, 4), dtype=np.uint16) + options.pool**2 // 2) // options.pool**2
    levels = (means * options.levels // 256).reshape(len(images), -1)
    for row, number in zip(levels.tolist(), classes.tolist(), strict=True):
        yield Segment((" ".join(map(str, row)), str(number)))
