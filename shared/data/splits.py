"""Splits without common sentences: segments, their normal form, deduplication and the files of a corpus."""

from __future__ import annotations

import hashlib
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple, TextIO

from pydantic import StringConstraints

from shared.errors import ReplicationError

_WORD = re.compile(r"\w+")

SplitName = Annotated[str, StringConstraints(pattern="^(train|valid|test[a-z0-9_]*)$")]
"""What a split may be called."""


class Segment(NamedTuple):
    """One aligned unit of a corpus: a verse, a paragraph or a sentence.

    Attributes:
        texts: one text per language, in the card's order; "" where a language lacks it.
        key: origin of the segment (``"43:3:16"``, ``"text/swriter/main.html#par_id1"``), if it is known.
        links: gold alignment as 0-indexed ``"s-t"`` links separated by spaces, if there is one.
    """

    texts: tuple[str, ...]
    key: str | None = None
    links: str | None = None


Corpus = Mapping[str, Iterable[Segment]]
"""Split name to segments. A split may be an iterator, because it is read once."""


class Accompanied(dict[str, Iterable[Segment]]):
    """A corpus with additional files, such as the pictures of scenes.

    Attributes:
        files: file name to its text, its bytes, or the path of a file to copy.
    """

    def __init__(self, splits: Corpus, files: Mapping[str, str | bytes | Path]) -> None:
        super().__init__(splits)
        self.files = files


def normalise(text: str) -> str:
    """Return the normal form that decides whether two sentences are equal: case-folded words without punctuation."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def hashed_split(key: str, *, valid_percent: int = 4, test_percent: int = 4) -> str:
    """Assign a document to train, valid or test by a hash of its name, so that new documents do not move old ones."""
    bucket = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 100
    if bucket < test_percent:
        return "test"
    return "valid" if bucket < test_percent + valid_percent else "train"


def by_document(segments: Iterable[tuple[str, Segment]]) -> dict[str, list[Segment]]:
    """Distribute (document, segment) pairs with `hashed_split`; all segments of a document are in the same split."""
    corpus: dict[str, list[Segment]] = {"train": [], "valid": [], "test": []}
    for document, segment in segments:
        corpus[hashed_split(document)].append(segment)
    return corpus


def write_corpus(
    corpus: Corpus, languages: Sequence[str], folder: Path, *, compared: Collection[str] | None = None
) -> dict[str, int]:
    """Write line-aligned ``<split>.<language>`` (and ``.key``, ``.align``) files; no sentence is in two splits.

    Test splits are written completely. A segment of valid is dropped if one of its texts, in any compared language,
    occurs in a test split; a segment of train is dropped if one occurs in valid or test. Runs of white space, including
    the line separators of Unicode, become one space, in keys too. The files of an `Accompanied` corpus are written
    unchanged.

    Args:
        corpus: split name (``train``, ``valid`` or ``test…``) to segments.
        languages: file suffixes, in the order of `Segment.texts`.
        folder: existing folder to write into.
        compared: the languages in which no two splits may share a text; None: all.

    Returns:
        Split name to the number of dropped segments.

    Raises:
        ReplicationError: a split is empty.
    """
    dropped: dict[str, int] = {}
    forbidden: set[str] = set()
    for group in _groups(corpus):
        fresh: set[str] = set()
        for split in group:
            dropped[split] = _write_split(
                split, corpus[split], languages, folder, compared or languages, forbidden, fresh
            )
        forbidden |= fresh
    if isinstance(corpus, Accompanied):
        for name, content in corpus.files.items():
            if isinstance(content, Path):
                shutil.copyfile(content, folder / name)
            elif isinstance(content, bytes):
                (folder / name).write_bytes(content)
            else:
                (folder / name).write_text(content, encoding="utf-8", newline="\n")
    return {split: dropped[split] for split in corpus}


def assert_disjoint(folder: Path, languages: Sequence[str], splits: Iterable[str]) -> None:
    """Check in the written files that train, valid and the test splits share no sentence in any language.

    Raises:
        ReplicationError: two splits share a sentence; the message has the sentence and the files.
    """
    home: dict[str, str] = {}
    for group in _groups(splits):
        names = [f"{split}.{language}" for split in group for language in languages]
        found: dict[str, str] = {}
        for name in names:
            for line in read_lines(folder / name):
                text = normalise(line)
                if text in home:
                    raise ReplicationError(f"{folder / name} shares {line!r} with {home[text]}; fetch it anew.")
                # Sentences of train are not stored, because no later split is compared with them.
                if text and not name.startswith("train."):
                    found[text] = name
        home |= found


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without their ``\n``; no other character ends a line."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def _groups(splits: Iterable[str]) -> list[list[str]]:
    """Order splits by priority: the test splits, then valid, then train."""
    names = list(splits)
    groups = [[name for name in names if name.startswith("test")], ["valid"], ["train"]]
    return [[name for name in group if name in names] for group in groups]


def _write_split(
    split: str,
    segments: Iterable[Segment],
    languages: Sequence[str],
    folder: Path,
    compared: Collection[str],
    forbidden: set[str],
    fresh: set[str],
) -> int:
    """Write a split without ``forbidden`` sentences, add its own to ``fresh``, and return how many were dropped."""
    written = dropped = 0
    with ExitStack() as stack:

        def create(suffix: str) -> TextIO:
            path = folder / f"{split}.{suffix}"
            return stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))

        files = [create(language) for language in languages]
        extras: dict[str, TextIO] | None = None
        for segment in segments:
            if extras is None:
                # The first segment decides which extra files the corpus has.
                present = {"key": segment.key is not None, "align": segment.links is not None}
                extras = {suffix: create(suffix) for suffix, there in present.items() if there}
            texts = [" ".join(text.split()) for text in segment.texts]
            judged = (text for language, text in zip(languages, texts, strict=True) if language in compared)
            normal = {normalise(text) for text in judged} - {""}
            if normal & forbidden:
                dropped += 1
                continue
            if split != "train":
                fresh |= normal
            for file, text in zip(files, texts, strict=True):
                file.write(text + "\n")
            for suffix, file in extras.items():
                extra = str(segment.key if suffix == "key" else segment.links)
                file.write(" ".join(extra.split()) + "\n")
            written += 1
    if not written:
        raise ReplicationError(f"the split '{split}' came out empty; check the card's reader and its options.")
    return dropped
