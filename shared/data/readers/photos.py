"""Photos in archives, with captions in a table and a list per split, or with both in a file of Karpathy."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from shared.config import Strict, build
from shared.data.cards import SafePath
from shared.data.photos import LANGUAGES, archives, photos_in
from shared.data.splits import Accompanied, Corpus, Segment, read_lines
from shared.errors import ReplicationError

_KARPATHY = {"train": "train", "val": "valid", "test": "test"}  # the part "restval" is in no split

_Described = dict[str, list[str]]
"""Photo file name to its captions."""


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
    words: str = r"\S+"
    at_most: int = Field(default=5, ge=1)

    @field_validator("words")
    @classmethod
    def _compiles(cls, words: str) -> str:
        try:
            re.compile(words)
        except re.error as error:
            raise ValueError(f"'{words}' is not a regular expression ({error})") from None
        return words


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Pair photos with their captions, in lower case, with spaces between words and signs.

    The raw files are tar and zip archives, which are copied unchanged, and the captions: a table (``image,caption`` per
    line) with a list of photos per split, or, with the suffix ``.json``, a file of Karpathy, which has the splits too.

    Raises:
        ReplicationError: the languages or options are wrong, a file is not the expected one, or a photo has no captions
            or is in no archive.
    """
    if tuple(languages) != LANGUAGES:
        raise ReplicationError(f"the reader 'photos' has the languages {' and '.join(LANGUAGES)}, in this order.")
    chosen = build(PhotosOptions, options, where="options of the reader 'photos'")
    path = next((raw / name for name in chosen.captions if (raw / name).is_file()), None)
    if path is None:
        raise ReplicationError(f"the raw file {' or '.join(chosen.captions)} is not there; correct the card.")
    try:
        splits = _karpathy(path) if path.suffix == ".json" else _listed(path, raw, chosen.splits)
        corpus = {split: list(_segments(photos, chosen)) for split, photos in splits.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReplicationError(
            f"the captions of the photos cannot be read ({type(error).__name__}: {error}); fetch them anew."
        ) from None
    packed = archives(raw)
    missing = {segment.texts[1] for split in corpus.values() for segment in split} - photos_in(packed).keys()
    if missing:
        raise ReplicationError(f"{len(missing)} photos are in no archive, among them {min(missing)}; fetch them anew.")
    return Accompanied(corpus, {archive.name: archive for archive in packed})


def _listed(path: Path, raw: Path, splits: Mapping[str, str]) -> dict[str, _Described]:
    """Return the splits of a table."""
    captions: _Described = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            captions.setdefault(row["image"], []).append(row["caption"])
    return {
        split: {photo: captions[photo] for photo in read_lines(raw / name) if photo} for split, name in splits.items()
    }


def _karpathy(path: Path) -> dict[str, _Described]:
    """Return the splits of ``dataset_<name>.json`` (Karpathy & Fei-Fei 2015)."""
    splits: dict[str, _Described] = {split: {} for split in _KARPATHY.values()}
    for image in json.loads(path.read_text(encoding="utf-8"))["images"]:
        if split := _KARPATHY.get(image["split"]):
            splits[split][image["filename"]] = [sentence["raw"] for sentence in image["sentences"]]
    return splits


def _segments(photos: _Described, options: PhotosOptions) -> Iterator[Segment]:
    for photo, captions in photos.items():
        texts = [text for text in _worded(captions, options.words) if text]
        if not texts:
            raise ValueError(f"the photo {photo} has no caption")
        yield Segment((json.dumps(texts[: options.at_most], ensure_ascii=False), photo))


def _worded(captions: Iterable[str], words: str) -> Iterator[str]:
    for caption in captions:
        yield " ".join(word.group() for word in re.finditer(words, caption.lower()))
