"""Splits without common sentences: segments, when two sentences are equal, deduplication and the files of a corpus."""

from __future__ import annotations

import hashlib
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import StringConstraints

from shared.data.opening import composed, read_lines
from shared.errors import ReplicationError

SplitName = Annotated[str, StringConstraints(pattern="^(train|valid|test[a-z0-9_]*)$")]
"""What a split may be called."""
NAMES = frozenset({"photo"})
"""The languages whose texts are names of files: they are kept, and compared, to the byte."""

_SIGNS = "&@#%*/\\§‰"  # that Unicode counts among the punctuation


class _Ignored(dict[int, "str | None"]):
    """Code point to what stands for it where sentences are compared: punctuation is a space, what is unseen nothing."""

    def __missing__(self, code: int) -> str | None:
        character, category = chr(code), unicodedata.category(chr(code))
        mark = (category[0] == "P" and category != "Pc" and character not in _SIGNS) or character in "`´"
        return self.setdefault(code, " " if mark else None if category == "Cf" else character)


_IGNORED = _Ignored()
# A minus, a decimal point and what stands between the parts of a number; the private characters are not ignored.
_OF_NUMBERS = re.compile(r"-(?=\s*\d)|[.,:](?=\d)")
_KEPT = str.maketrans("-.,:", "\u2212\ue000\ue001\ue002")


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


Corpus = Mapping[str, Iterable[Segment | str]]
"""Split name to segments; a text in place of one says why something is left out there. A split may be an iterator,
because it is read once."""
EQUAL = "a split of higher priority has an equal text"
EMPTY = "a text is empty; its line is kept, and no pair with it is used"
LeftOut = Counter[tuple[str, str]]
"""How much is left out, by split and reason."""


class Accompanied(dict[str, Iterable[Segment | str]]):
    """A corpus with additional files, such as the pictures of scenes.

    Attributes:
        files: file name to its text, its bytes, or the path of a file to copy.
        left_out: of these files, by split and reason.
    """

    def __init__(
        self, splits: Corpus, files: Mapping[str, str | bytes | Path], left_out: LeftOut | None = None
    ) -> None:
        super().__init__(splits)
        self.files, self.left_out = files, left_out or Counter()


def tidy(text: str) -> str:
    """Return a text as it is written: in Unicode's composed form (NFC), with one space for each run of white space."""
    return " ".join(composed(text).split())


def sentence(text: str) -> str:
    """Return the form by which two sentences are equal: letters in one case, marks, numbers and signs.

    Sentences that differ in nothing but the punctuation around words are equal, unless they have nothing else.
    """
    folded = composed(text).casefold()
    numbers = _OF_NUMBERS.sub(lambda found: found[0].translate(_KEPT), folded)
    plain = composed(numbers.translate(_IGNORED))
    return " ".join(plain.split()) or " ".join(composed(folded).split())


def plain_words(text: str) -> str:
    """Return the case-folded letters and digits of a text, by whose hash it is assigned to a split.

    Copies stay together. It is coarser than :func:`sentence`, and must never change: the splits of a corpus would.
    """
    return " ".join(re.findall(r"\w+", composed(text, "NFKC").casefold()))


def hash_of(text: str) -> int:
    """Return a number of 64 bits, the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def hashed_split(key: str, *, valid_percent: int = 4, test_percent: int = 4) -> str:
    """Assign a document to train, valid or test by a hash of its name, so that new documents do not move old ones."""
    bucket = hash_of(key) % 100
    if bucket < test_percent:
        return "test"
    return "valid" if bucket < test_percent + valid_percent else "train"


def write_corpus(
    corpus: Corpus, languages: Sequence[str], folder: Path, *, compared: Collection[str] | None = None,
    name: str = "the corpus",
) -> LeftOut:  # fmt: skip
    """Write line-aligned ``<split>.<language>`` (and ``.key``, ``.align``) files; no sentence is in two splits.

    Test splits are written completely. A segment of valid is dropped if one of its texts, in any compared language,
    occurs in a test split; a segment of train is dropped if one occurs in valid or test. Texts are in Unicode's
    composed form (NFC), and runs of white space, including the line separators of Unicode, become one space; names of
    files (:data:`NAMES`) stay as they are. The files of an `Accompanied` corpus are written unchanged.

    Args:
        corpus: split name (``train``, ``valid`` or ``test…``) to segments.
        languages: file suffixes, in the order of `Segment.texts`.
        folder: existing folder to write into.
        compared: the languages in which no two splits may share a text; None: all.
        name: what errors call the corpus.

    Returns: how much is left out of each split, by reason.

    Raises:
        ReplicationError: a split is empty, or the name of a file has a line end.
    """
    left_out: LeftOut = Counter(corpus.left_out if isinstance(corpus, Accompanied) else ())
    forbidden: set[str] = set()
    unread = dict(corpus)
    for group in _groups(corpus):
        fresh: set[str] = set()
        for split in group:
            kept = 0
            with ExitStack() as stack:
                files = {}
                for segment in unread.pop(split):
                    if isinstance(segment, str):
                        left_out[split, segment] += 1
                        continue
                    columns, sentences = _row(segment, languages, compared or languages)
                    if not forbidden.isdisjoint(sentences):
                        left_out[split, EQUAL] += 1
                        continue
                    if not all(columns[name] for name in languages):
                        left_out[split, EMPTY] += 1
                    if split != "train":  # no later split is compared with it
                        fresh |= sentences
                    for suffix, text in columns.items():
                        if not kept:  # the first segment decides which files there are beside the languages
                            path = folder / f"{split}.{suffix}"
                            files[suffix] = stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
                        files[suffix].write(text + "\n")
                    kept += 1
            if not kept:
                raise _empty(f"{name}: the split '{split}'", unread, left_out)
        forbidden |= fresh
    for file, content in corpus.files.items() if isinstance(corpus, Accompanied) else ():
        if isinstance(content, Path):
            shutil.copyfile(content, folder / file)
        else:
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return left_out


def _empty(what: str, unread: Corpus, left_out: LeftOut) -> ReplicationError:
    """Says what else than the draw may have left nothing, in splits that are still to be read, too."""
    left_out.update((of, why) for of, rest in unread.items() for why in rest if isinstance(why, str))
    reasons = ", ".join(f"{count:,} of {of}: {why}" for (of, why), count in left_out.items() if count)
    return ReplicationError(
        f"{what} came out empty ({reasons or 'nothing is left out, what is alike stays together'}); give more data, or "
        "a larger share by 'draw' of the card or '--percent' of 'data new', or correct 'reader.options'."
    )


def assert_disjoint(folder: Path, languages: Sequence[str], splits: Iterable[str]) -> None:
    """Check in the written files that train, valid and the test splits share no sentence in any language.

    Raises:
        ReplicationError: two splits share a sentence; the message has the sentence and the files.
    """
    home: dict[str, str] = {}
    for group in _groups(splits):
        found: dict[str, str] = {}
        for name, language in [(f"{split}.{language}", language) for split in group for language in languages]:
            for line in read_lines(folder / name):
                text = _compared(line, language)
                if text in home:
                    raise ReplicationError(f"{folder / name} shares {line!r} with {home[text]}; fetch it anew.")
                if text and group != ["train"]:
                    found[text] = name
        home |= found


def _groups(splits: Iterable[str]) -> list[list[str]]:
    """Order splits by priority: the test splits, then valid, then train."""
    names = list(splits)
    groups = [[name for name in names if name.startswith("test")], ["valid"], ["train"]]
    return [[name for name in group if name in names] for group in groups]


def _compared(text: str, language: str) -> str:
    return text if language in NAMES else sentence(text)


def _row(segment: Segment, languages: Sequence[str], compared: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """The line of each file of a split, and the sentences that no other split may have."""
    row = dict(zip(languages, segment.texts, strict=True))
    for name, text in row.items():
        if name not in NAMES:
            row[name] = tidy(text)
        elif "\n" in text:
            raise ReplicationError(f"the name {text!r} has a line end; give the file another name.")
    sentences = {_compared(text, name) for name, text in row.items() if name in compared} - {""}
    extras = {"key": segment.key, "align": segment.links}
    return row | {name: extra.replace("\n", " ") for name, extra in extras.items() if extra is not None}, sentences
