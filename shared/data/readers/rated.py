"""Sentences with ratings from negative to positive, divided into classes: the data of Hutto and Gilbert (2014)."""

from __future__ import annotations

import html
import tarfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, hashed_split
from shared.errors import ReplicationError


class RatedOptions(Strict):
    """Options of the reader ``rated``.

    Attributes:
        archive: the raw tar file.
        sets: name of a set, which is part of the keys, to its member of the archive.
        classes: names from the most negative to the most positive class, one more than thresholds.
        thresholds: the ratings between the classes, ascending. A rating equal to a threshold belongs to the class
            nearer to zero, so that a rating and its negative are in mirrored classes.
        valid_percent: percentage of the documents in valid.
        test_percent: percentage of the documents in test.
    """

    archive: str
    sets: dict[str, str] = Field(min_length=1)
    classes: tuple[str, ...]
    thresholds: tuple[float, ...]
    valid_percent: int = Field(gt=0, le=50)
    test_percent: int = Field(gt=0, le=50)

    @model_validator(mode="after")
    def _parted(self) -> RatedOptions:
        if list(self.thresholds) != sorted(set(self.thresholds)):
            raise ValueError("'thresholds' must ascend")
        if len(self.classes) != len(self.thresholds) + 1:
            raise ValueError("'classes' must be one more than 'thresholds'")
        return self


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read sentences keyed ``set/document:sentence`` with their class, split by document.

    A line has three tab-separated fields: ``document_sentence`` (or ``document``, if documents have one sentence each),
    the mean rating, and the text, in which HTML entities are decoded.

    Raises:
        ReplicationError: the languages or options are wrong, or the archive is not the expected one.
    """
    if list(languages) != ["text", "label"]:
        raise ReplicationError("the reader 'rated' has the languages text and label, in this order.")
    chosen = build(RatedOptions, options, where="options of the reader 'rated'")
    corpus: dict[str, list[Segment]] = {"train": [], "valid": [], "test": []}
    percent = {"valid_percent": chosen.valid_percent, "test_percent": chosen.test_percent}
    try:
        for document, segment in _sentences(raw / chosen.archive, chosen):
            corpus[hashed_split(document, **percent)].append(segment)
    except (tarfile.TarError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ReplicationError(f"{chosen.archive} cannot be read ({reason}); fetch it anew.") from None
    return corpus


def classify(rating: float, thresholds: Sequence[float]) -> int:
    """Return the index of the class of a rating, 0 for the most negative."""
    below = bisect_left(thresholds, rating)
    # Ties go towards zero from both sides: bisect_left alone would put -0.5 into the class below the threshold -0.5.
    return below + (rating < 0 and rating in thresholds)


def _sentences(archive: Path, options: RatedOptions) -> Iterator[tuple[str, Segment]]:
    with tarfile.open(archive) as tar:
        for name, member in options.sets.items():
            file = tar.extractfile(member)
            if file is None:
                raise ValueError(f"{member} is not a file")
            for line in file.read().decode("utf-8").split("\r\n"):
                if not line:
                    continue
                place, rating, text = line.split("\t")
                document, _, sentence = place.partition("_")
                label = options.classes[classify(float(rating), options.thresholds)]
                key = f"{name}/{document}:{sentence or 1}"
                yield f"{name}/{document}", Segment((html.unescape(text), label), key=key)
