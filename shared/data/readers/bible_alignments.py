"""The Greek New Testament and English translations, with the manual word alignments of `bible-alignments`."""

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
"""Token id to its verse and its position in the verse, from 0."""


class BibleAlignmentsOptions(Strict):
    """Options of the reader ``bible_alignments``.

    Attributes:
        translations: additional English texts for training: language, as in the reader ``bible``, to the key in
            ``bible.db``.
        valid_percent: percentage of the chapters in valid.
        test_percent: percentage of the chapters in test.
    """

    translations: dict[str, str]
    valid_percent: int = Field(gt=0, le=50)
    test_percent: int = Field(gt=0, le=50)


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read verses keyed ``book:chapter:verse``, split by chapter; texts are tokens separated by spaces.

    In valid and test the English text is the aligned Berean Standard Bible. The gold links are all pairs of Greek and
    English tokens of each manual record. In train each Greek verse occurs once per English text that has it, the Berean
    first. Verses that a record connects with another verse are left out, because the two editions divide the text
    differently there. Verses without manual links are left out of valid and test.

    Args:
        raw: folder with ``SBLGNT.tsv``, ``nt_BSB.tsv``, ``SBLGNT-BSB-manual.json`` and ``bible.db``.
        languages: Greek and English, ``grc`` and ``en``.
        options: `BibleAlignmentsOptions`.

    Raises:
        ReplicationError: the languages or options are wrong, or a file is not the expected one.
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
    """Tokenise a plain verse into words and punctuation marks in the style of the aligned text.

    A compound or a contraction is one token, quotation marks and apostrophes are typographic, dashes are long:
    ``"don't--he said, 'O man-child!'"`` becomes ``“ don’t — he said , ‘ O man-child ! ’ ”``.
    """
    text = text.replace("--", "—")
    text = re.sub(r"""(?<![^\s(—'])"(?=['\w])""", "“", text).replace('"', "”")
    text = re.sub(r"(?<![^\s(—“])'(?=[“\w])", "‘", text).replace("'", "’")
    return " ".join(_TOKEN.findall(text))


def _aligned(raw: Path) -> Iterator[tuple[str, Segment]]:
    """Yield (``book:chapter``, aligned verse); links are "" if the verse has no manual alignment."""
    try:
        greek = _tokens(raw / "SBLGNT.tsv", "id")
        # English verse numbers follow another tradition; this column has the Greek verse of a token.
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
            # Greek ids begin with a letter for the testament; the next eight digits are the verse.
            verse = row[verse_column].removeprefix("n")[:8]
            tokens[verse][row["id"]] = row["text"]
    return tokens


def _places(tokens: _Tokens) -> _Places:
    return {token: (verse, i) for verse, words in tokens.items() for i, token in enumerate(words)}


def _links(
    records: Sequence[Mapping[str, Any]], source: _Places, target: _Places
) -> tuple[dict[str, set[tuple[int, int]]], set[str]]:
    """Return the links (source position, target position) of each verse, and the verses that share a record."""
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
