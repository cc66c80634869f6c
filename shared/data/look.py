"""What a careful person would look at in a data set: counts, lengths, odd characters, copies, encodings, pictures."""

from __future__ import annotations

import hashlib
import json
import operator
import re
import unicodedata
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median

from shared.data.archives import stored
from shared.data.cards import Card, FolderSource, load_card
from shared.data.fetch import fetch
from shared.data.opening import picture_form, read_bytes, read_lines, reading, text_lines, visible
from shared.data.photos import archives
from shared.data.readers.texts import LABEL
from shared.data.splits import NAMES
from shared.errors import ReplicationError

_NOT_PLAIN = re.compile(r"[^ -~]")
_NOTED = {
    "stand in quotation marks, which are kept; take them off if they are CSV's": re.compile(r'"[^"]*(?:""[^"]*)*"'),
    "begin with '#', which is kept; take them out if they are comments": re.compile("#.*"),
    "are what programs write where a value is missing; take their rows out if so": re.compile("(?i)nan|n/?a|none|null"),
}
_SPLIT = re.compile(r"(train|valid|test[a-z0-9_]*)\.([a-z_]+)")
_NO_TEXT = {"key", "align", *NAMES}  # files of names, numbers or places: there is nothing to count in them
_SHOWN, _LONG = 5, 60  # of what there may be many, and characters of one that may be long
_SNIFFED = 1 << 20  # bytes


def describe(dataset: str, root: Path = Path("data")) -> Iterator[str]:
    """Yield sentences that describe the data of a card, which are fetched first if they are not there.

    A terminal obeys nothing in them.

    Raises:
        ReplicationError: as :func:`shared.data.fetch.fetch`.
    """
    yield from map(visible, _described(dataset, root))


def _described(dataset: str, root: Path) -> Iterator[str]:
    card, manifest = load_card(dataset, root), fetch(dataset, root=root)
    yield f"{card.id}: {card.title}; licence: {card.licence}; from {manifest.source}"
    yield from _encodings(card)
    names = [match for name in manifest.files if (match := _SPLIT.fullmatch(name))]
    words: dict[str, set[str]] = {}  # of train, by language
    for name in sorted(names, key=lambda match: (match[2], match[1] != "train")):
        if name[2] not in _NO_TEXT:
            yield from _text(root / dataset / name[0], name[2], words)
    for split in dict.fromkeys(name[1] for name in names):
        yield from _kept(root / dataset, split, {name[2] for name in names if name[1] == split})
    for archive in archives(root / dataset):
        forms: Counter[str] = Counter()
        hashes = set()
        for member, read in stored(archive):
            with reading(f"{archive.name}: {member!r}"):
                content = read()
            hashes.add(hashlib.sha256(content).digest())
            try:
                forms[picture_form(content)] += 1
            except ValueError:
                forms[f"no picture ({member})"] += 1
        yield f"{archive.name}: {forms.total():,} files, {forms.total() - len(hashes):,} copies; {_most(forms)}"
    yield from (f"left out: {reason}" for reason in manifest.reasons())


def _encodings(card: Card) -> Iterator[str]:
    """How the user's own files are encoded, and how their lines end."""
    for source in (each for each in card.sources if isinstance(each, FolderSource)):
        for path in filter(Path.is_file, (Path(source.folder).expanduser() / name for name in card.pins(source))):
            head = read_bytes(path, count=min(path.stat().st_size, _SNIFFED))
            rest, mark = head.replace(b"\r\n", b""), ", byte order mark" * head.startswith(b"\xef\xbb\xbf")
            ends = ["CR LF"] * (len(rest) < len(head)) + ["LF"] * (b"\n" in rest) + ["CR"] * (b"\r" in rest)
            with suppress(UnicodeDecodeError):  # of what is packed
                getincrementaldecoder("utf-8")().decode(head)
                yield f"{path.name}: UTF-8{mark}; line ends {', '.join(ends) or 'none'}"
            with suppress(ReplicationError):  # a packed or binary file has no lines to count
                if inside := [number for number, line in enumerate(text_lines(path), start=1) if "\r" in line]:
                    yield (
                        f"{path.name}: {len(inside):,} lines have a carriage return inside, first line "
                        f"{inside[0]:,}; it ends no line there, so write a line feed in its place if it should"
                    )


def _text(path: Path, language: str, words_of: dict[str, set[str]]) -> Iterator[str]:
    """What a file of lines has, and which words train lacks."""
    lengths: list[int] = []
    classes, characters, words, noted = (Counter[str]() for _ in range(4))
    hashes, longest = set(), (-1, 0, "")
    for number, line in enumerate(read_lines(path), start=1):
        said = json.loads(line) if language == "captions" else [line]
        text = " ".join(said)
        own = [*text] if language == "sequence" else text.split()
        words.update(own)
        lengths.append(len(own))
        characters.update(_NOT_PLAIN.findall(text))
        hashes.add(hash(text))
        longest = max(longest, (len(text), -number, text))
        if len({*said}) < len(said):
            noted["have a caption twice"] += 1
        noted.update(note for note, form in _NOTED.items() if form.fullmatch(text))
        if language == LABEL:
            classes[text] += 1
    yield from (f"{path.name}: {count:,} lines {note}" for note, count in noted.items())
    if classes:
        one = "; one class leaves nothing to tell apart" * (len(classes) == 1)
        yield f"{path.name}: {len(lengths):,} labels, {_most(classes)}{one}"
        return
    yield (
        f"{path.name}: {len(lengths):,} lines, {lengths.count(0):,} empty, {len(lengths) - len(hashes):,} copies; "
        f"{words.total():,} words, {len(words):,} different, {median(lengths or [0]):,.12g} in the middle line and "
        f"{max(lengths, default=0):,} at most; longest line {-longest[1]}: {longest[2][:_LONG]}"
    )
    if odd := Counter({_named(sign): count for sign, count in characters.items() if _odd(sign)}):
        yield f"{path.name}: odd characters: {_most(odd)}"
    known = words_of.setdefault(language, set(words))
    if unknown := Counter({word: count for word, count in words.items() if word not in known}):
        yield f"{path.name}: {unknown.total():,} words that train lacks: {_most(unknown)}"


def _kept(folder: Path, split: str, languages: Collection[str]) -> Iterator[str]:
    """What may be a mistake of who wrote the data, and stays as it is."""
    sides = [read_lines(folder / f"{split}.{each}") for each in sorted({*languages} - {*_NO_TEXT, LABEL})]
    if len(sides) == 2 and (same := sum(map(operator.eq, *sides))):
        yield f"{split}: {same:,} pairs have one text on both sides"
    if {"sequence", "key"} <= {*languages}:
        names = [key.partition(":")[2] for key in read_lines(folder / f"{split}.key")]
        if again := len(names) - len({*names}):
            yield f"{split}: {again:,} sequences have an identifier that stands before"


def _odd(sign: str) -> bool:
    """Whether a character is unseen, unknown to Unicode, private, or stands for one that was lost."""
    return unicodedata.category(sign)[0] == "C" or sign == "\ufffd"


def _named(sign: str) -> str:
    lost = bytes([ord(sign)]).decode("cp1252", "replace") if "\x80" <= sign <= "\x9f" else ""
    return f"U+{ord(sign):04X} {unicodedata.name(sign, f'({lost} in Windows-1252)' if lost else '(no name)')}"


def _most(counts: Counter[str]) -> str:
    """The most frequent of what is counted."""
    rest = f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    return ", ".join(f"{name[:_LONG]} ({count:,})" for name, count in islice(counts.most_common(), _SHOWN)) + rest
