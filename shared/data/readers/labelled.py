"""Labelled texts from the common file formats of classification corpora, in their official splits."""

from __future__ import annotations

import hashlib
import heapq
import json
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from pydantic import Field, PositiveInt

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, SplitName, hashed_split, normalise, read_lines
from shared.errors import ReplicationError

LABEL = "label"
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+)")


class LabelledOptions(Strict):
    """Options of the reader ``labelled``.

    Attributes:
        parts: split to the possible names of its raw file or folder; the first that exists is read, since two sources
            may have the same data in different files.
        fields: language to the field of a record, if their names differ.
        labels: label in the raw data to the written class, or null to leave the text out; default: all unchanged.
        valid_percent: percentage of the texts of train that become valid, for a corpus without that split; the hash
            of the text decides, so that copies stay together.
        sample: split to its number of texts, which are drawn from the file of train by the hash of the text. Copies
            stay together, so the number of texts may differ by a few.
    """

    parts: dict[str, tuple[str, ...]] = Field(min_length=1)
    fields: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str | None] | None = None
    valid_percent: int = Field(default=0, ge=0, le=50)
    sample: dict[SplitName, PositiveInt] | None = Field(default=None, min_length=1)


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read one segment per text; the language ``label`` has its class. HTML line breaks become spaces.

    Raises:
        ReplicationError: the options are wrong, or there is no language ``label``; while reading (a sample is read at
            once): a file has another format than its suffix, lacks a field, or has a label that is not an option.
    """
    chosen = build(LabelledOptions, options, where="options of the reader 'labelled'")
    if LABEL not in languages or len(languages) < 2:
        raise ReplicationError("the reader 'labelled' needs the language 'label' and one of text.")
    if chosen.sample:
        if set(chosen.parts) != {"train"} or chosen.valid_percent:
            raise ReplicationError("'sample' needs parts of 'train', and neither other parts nor 'valid_percent'.")
        return _sample(raw, languages, chosen, chosen.sample)
    corpus = {split: _segments(raw, split, languages, chosen) for split in chosen.parts}
    if chosen.valid_percent:
        if "train" not in corpus or "valid" in corpus:
            raise ReplicationError("'valid_percent' needs parts of 'train' and none of 'valid'.")
        corpus["train"] = _side(raw, "train", languages, chosen)
        corpus["valid"] = _side(raw, "valid", languages, chosen)
    return corpus


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the records of a raw file or folder; the suffix decides the format.

    * folder: ``<label>/<number>….txt``, one text per file; fields ``label`` and ``text``
    * ``.json``, ``.jsonl``, ``.jsonl.xz``: one object per line
    * ``.tab`` (of Orange): field names, two lines of types, then one record per line
    * else: ``label text`` per line

    Raises:
        ValueError: the content has another format (including UnicodeDecodeError and JSONDecodeError).
    """
    if path.is_dir():
        for file in sorted(path.glob("*/*.txt"), key=_numbered):
            yield {LABEL: file.parent.name, "text": file.read_text(encoding="utf-8")}
    elif {".json", ".jsonl"} & set(path.suffixes):
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    elif path.suffix == ".tab":
        header, *rows = (line.split("\t") for line in read_lines(path))
        yield from (dict(zip(header, row, strict=True)) for row in rows[2:] if row != [""])
    else:
        for line in read_lines(path):
            label, _, text = line.partition(" ")
            yield {LABEL: label, "text": text}


def _numbered(file: Path) -> tuple[str, list[str | int]]:
    """Return a sort key that orders 2_7.txt before 10_1.txt."""
    return file.parent.name, [int(part) if part.isdigit() else part for part in _NUMBER.split(file.name)]


def _segments(raw: Path, split: str, languages: Sequence[str], options: LabelledOptions) -> Iterator[Segment]:
    names = options.parts[split]
    path = next((raw / name for name in names if (raw / name).exists()), None)
    if path is None:
        raise ReplicationError(f"the raw file {' or '.join(names)} of '{split}' is not there.")
    try:
        for record in records(path):
            label = str(record[options.fields.get(LABEL, LABEL)])
            if options.labels is not None and label not in options.labels:
                raise ReplicationError(f"{path.name} has the label '{label}', which the card does not list.")
            written = label if options.labels is None else options.labels[label]
            if written is not None:
                texts = {name: record[options.fields.get(name, name)] for name in languages if name != LABEL}
                parts = {name: _BREAK.sub(" ", text) for name, text in texts.items()} | {LABEL: written}
                yield Segment(tuple(parts[name] for name in languages))
    except KeyError as error:
        raise ReplicationError(f"a record of {path.name} has no field {error}.") from None
    except (ValueError, TypeError, lzma.LZMAError) as error:
        raise ReplicationError(f"{path.name} cannot be read ({error}); fetch it anew.") from None


def _side(raw: Path, side: str, languages: Sequence[str], options: LabelledOptions) -> Iterator[Segment]:
    """Yield the part of train that stays train, or the part that becomes valid."""
    for segment in _segments(raw, "train", languages, options):
        key = _text(segment, languages)
        if hashed_split(key, valid_percent=options.valid_percent, test_percent=0) == side:
            yield segment


def _sample(
    raw: Path, languages: Sequence[str], options: LabelledOptions, sizes: Mapping[str, int]
) -> dict[str, Iterator[Segment]]:
    """Sort the texts by hash and assign them to the splits of ``sizes`` in order."""
    hashes = (_hash(segment, languages) for segment in _segments(raw, "train", languages, options))
    least = heapq.nsmallest(sum(sizes.values()), hashes)
    if len(least) < sum(sizes.values()):
        raise ReplicationError(f"'sample' asks for {sum(sizes.values())} texts, but there are {len(least)}.")
    ends = [least[end - 1] for end in accumulate(sizes.values())]

    def between(low: int, high: int) -> Iterator[Segment]:
        segments = _segments(raw, "train", languages, options)
        return (segment for segment in segments if low < _hash(segment, languages) <= high)

    return {split: between(*bounds) for split, bounds in zip(sizes, pairwise([-1, *ends]), strict=True)}


def _hash(segment: Segment, languages: Sequence[str]) -> int:
    return int.from_bytes(hashlib.sha256(_text(segment, languages).encode()).digest()[:8], "big")


def _text(segment: Segment, languages: Sequence[str]) -> str:
    """Return the normal form that decides whether two texts are equal, regardless of the label."""
    texts = (text for name, text in zip(languages, segment.texts, strict=True) if name != LABEL)
    return normalise(" ".join(texts))
