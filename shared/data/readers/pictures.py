"""Pictures: photos in archives with their captions, and pixels in idx files, as of MNIST, or the files of CIFAR-10."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shared.config import Strict
from shared.data.cards import SafePath
from shared.data.opening import first_of, listed, read_bytes, read_json, read_table, reading, text_lines
from shared.data.photos import Photos, archives
from shared.data.splits import Accompanied, Corpus, Segment
from shared.errors import ReplicationError

Images = NDArray[np.uint8]
"""(N, height, width, channels)."""

_KARPATHY = {"train": "train", "val": "valid", "test": "test"}  # the part "restval" is in no split
_IDX_BYTES_OF_THREE_AXES = b"\0\0\x08\x03"
_CIFAR_PLANES = (3, 32, 32)


class PhotosOptions(Strict):
    r"""Options of the reader ``photos``.

    Attributes:
        captions: possible names of the file of captions; the first that exists is read.
        splits: split name to the file with the list of its photos, for captions in a table.
        words: a regular expression that matches the words and signs of a caption; other characters separate them.
        at_most: largest number of captions per photo; the first ones are kept.
    """

    captions: list[SafePath] = Field(min_length=1)
    splits: dict[str, SafePath] = Field(default_factory=dict)
    words: re.Pattern[str] = re.compile(r"\S+")
    at_most: int = Field(default=5, ge=1)


def read_photos(raw: Path, languages: Sequence[str], options: PhotosOptions) -> Corpus:
    """Photos in archives, with captions in a table and a list per split, or with both in a file of Karpathy.

    Captions are in lower case, with spaces between words and signs. The raw files are tar and zip archives, which are
    copied unchanged, and the captions: a table (``image,caption`` per line) with a list of photos per split, or, with
    the suffix ``.json``, a file of Karpathy, which has the splits too.

    Raises:
        ReplicationError: a file is not the expected one, or a photo has no captions or is in no archive.
    """
    path = first_of(raw, options.captions)
    with reading(path.name):
        described = _karpathy(path) if path.suffix == ".json" else _listed(path, raw, options)
        corpus = {
            split: [_segment(photo, captions, options) for photo, captions in photos.items()]
            for split, photos in described.items()
        }
    packed = archives(raw)
    Photos(packed).check(photo for photos in described.values() for photo in photos)
    return Accompanied(corpus, {archive.name: archive for archive in packed})


def _listed(path: Path, raw: Path, options: PhotosOptions) -> dict[str, dict[str, list[str]]]:
    """Return the captions of each photo of each split, from a table and the lists of the splits."""
    captions: dict[str, list[str]] = {}
    for _, row in read_table(path, delimiter=",", quoted=True):
        captions.setdefault(row["image"], []).append(row["caption"])
    return {
        split: {photo: captions.get(photo, []) for photo in text_lines(first_of(raw, [name])) if photo}
        for split, name in options.splits.items()
    }


def _karpathy(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the captions of each photo of each split, from ``dataset_<name>.json`` (Karpathy & Fei-Fei 2015)."""
    splits: dict[str, dict[str, list[str]]] = {split: {} for split in _KARPATHY.values()}
    for image in read_json(path)["images"]:
        if split := _KARPATHY.get(image["split"]):
            splits[split][image["filename"]] = [sentence["raw"] for sentence in image["sentences"]]
    return splits


def _segment(photo: str, captions: Sequence[str], options: PhotosOptions) -> Segment:
    worded = (" ".join(word.group() for word in options.words.finditer(text.lower())) for text in captions)
    texts = [text for text in worded if text]
    if not texts:
        raise ValueError(f"the photo {photo} has no caption")
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
    train, test = (_joined(raw, names, options.format) for names in (options.train, options.test))
    if options.valid >= len(train):
        raise ReplicationError(
            f"there are {len(train)} training pictures, of which {options.valid} cannot be taken for validation; "
            "correct the card."
        )
    splits = {"test": test, "valid": train[-options.valid :], "train": train[: -options.valid]}
    folder = raw / "splits"
    folder.mkdir()
    seen: set[bytes] = set()
    for split, images in splits.items():
        hashes = [hashlib.sha256(image).digest() for image in images]
        np.save(folder / f"{split}.images.npy", images[[own not in seen for own in hashes]], allow_pickle=False)
        seen.update(hashes)
    return Accompanied({}, {path.name: path for path in listed(folder)})


def _joined(raw: Path, names: Sequence[str], form: Literal["idx", "cifar"]) -> Images:
    parts = []
    for name in names:
        with reading(name):
            parts.append((_idx if form == "idx" else _cifar)(read_bytes(first_of(raw, [name]))))
    if len({part.shape[1:] for part in parts}) > 1:
        raise ReplicationError(f"the pictures of {' and '.join(names)} differ in size; correct the card.")
    return np.ascontiguousarray(np.concatenate(parts))


def _idx(content: bytes) -> Images:
    """Read idx: a magic number of four bytes, three big-endian sizes, and the grey values of all pictures by rows."""
    if content[:4] != _IDX_BYTES_OF_THREE_AXES:
        raise ValueError("it does not begin as an idx file of bytes with three axes")
    sizes = [int.from_bytes(content[start : start + 4], "big") for start in (4, 8, 12)]
    values = np.frombuffer(content, np.uint8)[16:]
    if not len(values) or len(values) != math.prod(sizes):
        raise ValueError("it is longer or shorter than it says itself")
    return values.reshape(*sizes, 1)


def _cifar(content: bytes) -> Images:
    """Read CIFAR-10: for each picture one byte with its class, then one plane per colour, row by row."""
    values = np.frombuffer(content, np.uint8)
    size = 1 + math.prod(_CIFAR_PLANES)
    if not len(values) or len(values) % size:
        raise ValueError(f"it does not consist of pictures of {size:,} bytes")
    return values.reshape(-1, size)[:, 1:].reshape(-1, *_CIFAR_PLANES).transpose(0, 2, 3, 1)
