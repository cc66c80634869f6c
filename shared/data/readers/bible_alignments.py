"""The Greek New Testament and its English, with manual word alignments of the `bible-alignments` package."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from shared.config import Strict, build
from shared.data.readers.bible import verses
from shared.data.splits import Corpus, Segment, hashed_split
from shared.errors import ReplicationError

_TOKEN = re.compile(r"\d+(?:,\d+)+|\w+(?:[-’]\w+)*|\.{3}|[^\w\s]")
_Tokens = dict[str, dict[str, str]]
"""Verse (BBCCCVVV) to its tokens in order: id to text."""
_Places = dict[str, tuple[str, int]]
"""Token id to its verse and its position there, from 0."""


class BibleAlignmentsOptions(Strict):
    """Options of the reader ``bible_alignments``.

    Attributes:
        translations: further English texts to train on: language as in the reader ``bible`` to the key in
            ``bible.db``.
        valid_percent: of the chapters.
        test_percent: of the chapters.
    """

    translations: dict[str, str]
    valid_percent: int = Field(gt=0, le=50)
    test_percent: int = Field(gt=0, le=50)


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read verses keyed ``book:chapter:verse``, split by chapter; texts are tokens separated by spaces.

    In valid and test the English is the aligned Berean Standard Bible, and every link of every manual record
    is gold: all pairs of its Greek and its English tokens. In train each Greek verse comes once per English
    text that has it, the Berean first. Left out are verses that a record connects with another verse (the two
    editions part the text differently there) and, from valid and test, those that nobody aligned.

    Args:
        raw: folder with ``SBLGNT.tsv``, ``nt_BSB.tsv``, ``SBLGNT-BSB-manual.json`` and ``bible.db``.
        languages: Greek and English, ``grc`` and ``en``.
        options: `BibleAlignmentsOptions`.

    Raises:
        ReplicationError: other languages, wrong options, or files that are not the ones that are meant.
    """
    if list(languages) != ["grc", "en"]:
        raise ReplicationError("the reader 'bible_alignments' has the languages grc and en, in this order.")
    chosen = build(BibleAlignmentsOptions, options, where="options of the reader 'bible_alignments'")
    further = {
        segment.key: [tokenize(text) for text in segment.texts if text]
        for _, segment in verses(raw / "bible.db", list(chosen.translations.items()))
    }
    corpus: dict[str, list[Segment]] = {"train": [], "valid": [], "test": []}
    percent = {"valid_percent": chosen.valid_percent, "test_percent": chosen.test_percent}
    for chapter, verse in _aligned(raw):
        split = hashed_split(chapter, **percent)
        if split == "train":
            greek, aligned = verse.texts
            texts = [aligned, *further.get(verse.key, [])]
            corpus[split] += [Segment((greek, english), verse.key) for english in texts]
        elif verse.links:
            corpus[split].append(verse)
    return corpus


def tokenize(text: str) -> str:
    """Part a plain verse into words and marks, written as the aligned text writes them.

    Compounds and contractions are one word, quotation marks and apostrophes are typographic, dashes are long:
    ``"don't--he said, 'O man-child!'"`` becomes ``“ don’t — he said , ‘ O man-child ! ’ ”``.
    """
    text = text.replace("--", "—")
    text = re.sub(r"""(?<![^\s(—'])"(?=['\w])""", "“", text).replace('"', "”")
    text = re.sub(r"(?<![^\s(—“])'(?=[“\w])", "‘", text).replace("'", "’")
    return " ".join(_TOKEN.findall(text))


def _aligned(raw: Path) -> Iterator[tuple[str, Segment]]:
    """Yield (``book:chapter``, aligned verse); links are "" if nobody aligned it."""
    try:
        greek = _tokens(raw / "SBLGNT.tsv", "id")
        # The English is numbered by its own tradition; this column says to which Greek verse a token belongs.
        english = _tokens(raw / "nt_BSB.tsv", "source_verse")
        records = json.loads((raw / "SBLGNT-BSB-manual.json").read_text(encoding="utf-8"))["records"]
        links, torn = _links(records, _places(greek), _places(english))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ReplicationError(f"the gold alignments cannot be read ({reason}); fetch them anew.") from None
    for verse in greek:
        if verse in english and verse not in torn:
            chapter = f"{int(verse[:2])}:{int(verse[2:5])}"
            texts = " ".join(greek[verse].values()), " ".join(english[verse].values())
            gold = " ".join(f"{s}-{t}" for s, t in sorted(links.get(verse, ())))
            yield chapter, Segment(texts, key=f"{chapter}:{int(verse[5:])}", links=gold)


def _tokens(path: Path, verse_column: str) -> _Tokens:
    tokens: _Tokens = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            # Greek ids begin with the letter of their testament; all have the verse in the eight digits then.
            verse = row[verse_column].removeprefix("n")[:8]
            tokens[verse][row["id"]] = row["text"]
    return tokens


def _places(tokens: _Tokens) -> _Places:
    return {token: (verse, i) for verse, words in tokens.items() for i, token in enumerate(words)}


def _links(
    records: Sequence[Mapping[str, Any]], source: _Places, target: _Places
) -> tuple[dict[str, set[tuple[int, int]]], set[str]]:
    """The links (source position, target position) of every verse, and the verses that share a record."""
    links: dict[str, set[tuple[int, int]]] = defaultdict(set)
    torn: set[str] = set()
    for record in records:
        sources = [source[token] for token in record["source"]]
        targets = [target[token] for token in record["target"]]
        touched = {verse for verse, _ in (*sources, *targets)}
        if len(touched) > 1:
            torn |= touched
        else:
            links[touched.pop()] |= {(s, t) for _, s in sources for _, t in targets}
    return links, torn
