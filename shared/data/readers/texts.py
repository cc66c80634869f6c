"""Texts in the common formats of corpora: parallel lines, labelled texts and running text, in official splits."""

from __future__ import annotations

import heapq
import html
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, model_validator

from shared.config import Strict
from shared.data import opening
from shared.data.opening import byte_range, first_of, form_of, json_lines, listed, read_table, read_text, text_lines
from shared.data.splits import Accompanied, Corpus, Segment, SplitName, hash_of, hashed_split, plain_words
from shared.errors import ReplicationError

LABEL = "label"
TABLES = {".csv": ",", ".tsv": "\t"}
"""Suffix of a table to what stands between its fields; only in those of CSV quotation marks have a meaning."""
TABULAR = (*TABLES, ".jsonl")
"""Suffixes of files of records that name their fields."""
_TEXTS = "*/*.[tT][xX][tT]"
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+)")
# A comment, or a CDATA section, whose text (the group) stands as it is: '<' opens no tag in it.
_COMMENT = re.compile(r"<!--.*?-->|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_OPENED = re.compile(r"<seg\b[^>]*>", re.IGNORECASE)
_SEGMENT = re.compile(r"<seg\b[^>]*>((?:(?!<seg\b).)*?)</seg>", re.DOTALL | re.IGNORECASE)
# The files of IWSLT have lines with metadata between the sentences; title and description are translated too.
_NOTE = re.compile(r"\s*</?(?:url|talkid|keywords|speaker|reviewer|translator|doc)\b")
_TRANSLATED_NOTE = re.compile(r"</?(?:title|description)>")


class TabularOptions(Strict):
    """Options of the readers of texts that may stand in tables or records.

    Attributes:
        fields: language to the column of a table (``.csv``, ``.tsv``) or the field of a record (``.jsonl``), if their
            names differ.
        columns: names of the columns of tables whose first line does not have them.
        skip_incomplete: whether to leave out what lacks a text or a label, as in noisy crawled corpora.
    """

    fields: dict[str, str] = Field(default_factory=dict)
    columns: tuple[str, ...] = ()
    skip_incomplete: bool = False


class ParallelOptions(TabularOptions):
    """Options of the reader ``parallel``.

    Attributes:
        parts: split to its parts in order; a part names a raw file per language (``.sgm`` or ``.xml``: SGML;
            else one segment per line; with ``.tags``: between lines of metadata); a table for each language.
        valid_every: for a corpus without valid: every n-th segment of train becomes valid.
    """

    parts: dict[str, tuple[dict[str, str], ...]] = Field(min_length=1)
    valid_every: int | None = Field(default=None, ge=2)

    @model_validator(mode="after")
    def _one_valid(self) -> ParallelOptions:
        if self.valid_every and not ("train" in self.parts and "valid" not in self.parts):
            raise ValueError("'valid_every' needs parts of 'train' and none of 'valid'")
        return self


def read_parallel(raw: Path, languages: Sequence[str], options: ParallelOptions) -> Corpus:
    """Parallel text in line-aligned files (plain, SGML or with tagged notes), in official splits.

    It is read segment by segment, so that a corpus may be larger than the memory.

    Raises:
        ReplicationError: the options are wrong; while reading: the files of a part differ in their number of
            segments, or a file is not UTF-8.
    """
    for split, parts in options.parts.items():
        if any(set(part) != set(languages) for part in parts):
            wanted = ", ".join(languages)
            raise ReplicationError(f"the reader 'parallel': a part of '{split}' does not have just {wanted}.")

    def segments(split: str) -> Iterator[Segment | str]:
        for part in options.parts[split]:
            names, number = [part[language] for language in languages], 0
            try:
                for texts in zip(*(_sentences(raw / part[each], each, options) for each in languages), strict=True):
                    yield Segment(texts) if all(texts) or not options.skip_incomplete else "a text is empty"
                    number += 1
            except ValueError:
                raise ReplicationError(
                    f"{' and '.join(names)} do not have equally many segments: one ends after {number}; correct it."
                ) from None

    corpus = {split: segments(split) for split in options.parts}
    if every := options.valid_every:
        corpus |= {split: _side(segments("train"), every, split) for split in ("valid", "train")}
    return corpus


def _side(segments: Iterator[Segment | str], every: int, split: str) -> Iterator[Segment | str]:
    """Every n-th segment, which becomes valid, or all others."""
    number = 0
    for segment in segments:
        number += isinstance(segment, Segment)
        if split == ("valid" if isinstance(segment, Segment) and number % every == 0 else "train"):
            yield segment


def _sentences(path: Path, language: str, options: ParallelOptions) -> Iterator[str]:
    if form_of(path) in TABULAR:
        for place, record in records(path, options.columns):
            yield text_of(record, options.fields.get(language, language), place).strip()
    elif form_of(path) in {".sgm", ".xml"}:
        text = _COMMENT.sub(lambda found: html.escape(found[1] or "") or "\n" * found[0].count("\n"), read_text(path))
        for begin in [each.start() for each in _OPENED.finditer(text)] or [len(text)]:
            found = _SEGMENT.match(text, begin)
            if found is None:
                line = text.count("\n", 0, begin) + 1
                said = f"the segment that begins in line {line} has no end" if begin < len(text) else "it has no <seg>"
                raise ReplicationError(f"{path.name}: {said}; correct it.")
            yield html.unescape(found[1]).strip()
    elif ".tags" in path.suffixes:
        sentences = (line for line in text_lines(path) if not _NOTE.match(line))
        yield from (_TRANSLATED_NOTE.sub("", line).strip() for line in sentences)
    else:
        yield from map(str.strip, text_lines(path))


class LabelledOptions(TabularOptions):
    """Options of the reader ``labelled``.

    Attributes:
        parts: split to the possible names of its raw file or folder; the first that exists is read, since two sources
            may have the same data in different files.
        labels: label in the raw data to the written class, or null to leave the text out; default: all unchanged.
        valid_percent: percentage of the texts of train that become valid, for a corpus without that split; the hash
            of the text decides, so that copies stay together.
        sample: split to its number of texts, which are drawn from the file of train by the hash of the text. Copies
            stay together, so the number of texts may differ by a few.
    """

    parts: dict[str, tuple[str, ...]] = Field(min_length=1)
    labels: dict[str, str | None] | None = None
    valid_percent: int = Field(default=0, ge=0, le=50)
    sample: dict[SplitName, PositiveInt] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _parted_once(self) -> LabelledOptions:
        if self.sample and (set(self.parts) != {"train"} or self.valid_percent):
            raise ValueError("'sample' needs parts of 'train', and neither other parts nor 'valid_percent'")
        if self.valid_percent and not ("train" in self.parts and "valid" not in self.parts):
            raise ValueError("'valid_percent' needs parts of 'train' and none of 'valid'")
        return self


def read_labelled(raw: Path, languages: Sequence[str], options: LabelledOptions) -> Corpus:
    """Labelled texts from the common file formats of classification corpora, in their official splits.

    The language ``label`` has the class of a text. HTML line breaks become spaces.

    Raises:
        ReplicationError: there is no language ``label``; while reading (a sample is read at once): a file has another
            format than its suffix, lacks a field, or has a label that is not an option.
    """
    if LABEL not in languages or len(languages) < 2:
        raise ReplicationError("the reader 'labelled' needs the language 'label' and one of text.")

    def segments(split: str) -> Iterator[Segment | str]:
        return _labelled(first_of(raw, options.parts[split]), languages, options)

    def key(segment: Segment | str) -> str:
        """What decides where a text goes, whatever its label."""
        if isinstance(segment, str):
            return segment
        texts = (text for name, text in zip(languages, segment.texts, strict=True) if name != LABEL)
        return plain_words(" ".join(texts))

    if options.sample:
        return _sample(
            lambda: ((hash_of(key(each)), each) for each in segments("train") if isinstance(each, Segment)),
            options.sample,
        )

    def side(split: str) -> Iterator[Segment | str]:
        """The part of train that stays train, or the part that becomes valid."""
        percent = {"valid_percent": options.valid_percent, "test_percent": 0}
        return (segment for segment in segments("train") if hashed_split(key(segment), **percent) == split)

    corpus = {split: segments(split) for split in options.parts}
    return corpus | {split: side(split) for split in ("train", "valid") if options.valid_percent}


def _labelled(path: Path, languages: Sequence[str], options: LabelledOptions) -> Iterator[Segment | str]:
    fields = {name: options.fields.get(name, name) for name in languages}
    if path.is_dir():
        others = {*listed(path, "**/*")} - {*listed(path, _TEXTS)}
        yield from ("a file is not <label>/<name>.txt" for each in others if each.is_file())
    for place, record in records(path, options.columns):
        value = text_of(record, fields[LABEL], place, str | float | int)  # pandas writes 2 as 2.0 beside a gap
        label = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        if options.labels is not None and label not in options.labels:
            raise ReplicationError(f"{place}, has the label '{label}', which the card does not list.")
        written = label if options.labels is None else options.labels[label]
        texts = {
            name: _BREAK.sub(" ", text_of(record, field, place)) for name, field in fields.items() if name != LABEL
        }
        if written is None:
            yield f"the card leaves out the label '{label}'"
        elif options.skip_incomplete and not all(map(str.strip, (written, *texts.values()))):
            yield "a text or a label is empty"
        else:
            yield Segment(tuple((texts | {LABEL: written})[name] for name in languages))


def text_of(record: Mapping[str, Any], field: str, place: str, kind: Any = str) -> Any:
    """The text of a field of a record, or what else is allowed.

    Raises:
        ReplicationError: the record has no such field, or it is of another type; names the place.
    """
    if not isinstance(record.get(field), kind):
        raise ReplicationError(f"{place}, has no field '{field}' of text; correct it, or the card's 'fields'.")
    return record[field]


def records(path: Path, columns: Sequence[str] = (), form: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place, for errors, and the fields of each record; ``form``, or else the suffix, decides the format.

    * folder: ``<label>/<number>….txt``, one text per file; fields ``label`` and ``text``
    * ``.json``, ``.jsonl``, ``.jsonl.xz``: one object per line
    * ``.csv``, ``.tsv``: a table; its first line names the fields, unless ``columns`` does
    * ``.tab`` (of Orange): field names, two lines of types, then one record per line
    * else: ``label text`` per line
    """
    form = form or form_of(path)
    if path.is_dir():
        if not (files := [*filter(Path.is_file, listed(path, _TEXTS))]):
            raise ReplicationError(f"{path.name} has no file <label>/<name>.txt; correct the card.")
        for file in sorted(files, key=_numbered):
            name = str(file.relative_to(path.parent))
            yield name, {LABEL: file.parent.name, "text": read_text(file, name)}
    elif form in (".json", ".jsonl"):
        for place, record in json_lines(path):
            if not isinstance(record, dict):
                raise ReplicationError(f"{place}, is no object with fields; correct it.")
            yield place, record
    elif form in TABLES:
        yield from read_table(path, TABLES[form], columns)
    elif form == ".tab":
        types = tuple(f"{path.name}, line {number}" for number in (2, 3))  # the second of which may be empty
        yield from (row for row in read_table(path, "\t") if row[0] not in types)
    else:
        for number, line in enumerate(text_lines(path), start=1):
            label, _, text = line.partition(" ")
            place = f"{path.name}, line {number}"
            if label.split() != [label] or text.startswith("__label__"):
                raise ReplicationError(
                    f"{place} does not begin with one label and a space; correct it, or name it .tsv."
                )
            yield place, {LABEL: label, "text": text}


def _numbered(file: Path) -> tuple[str, list[str | int]]:
    """Return a sort key that orders 2_7.txt before 10_1.txt."""
    return file.parent.name, [int(part) if i % 2 else part for i, part in enumerate(_NUMBER.split(file.name))]


def _sample(
    hashed: Callable[[], Iterator[tuple[int, Segment]]], sizes: Mapping[str, int]
) -> dict[str, Iterator[Segment]]:
    """Sort the texts by hash and assign them to the splits of ``sizes`` in order.

    Args:
        hashed: a function that reads all texts, each after its hash.
        sizes: number of texts of each split.
    """
    least = heapq.nsmallest(sum(sizes.values()), (number for number, _ in hashed()))
    if len(least) < sum(sizes.values()):
        raise ReplicationError(f"'sample' asks for {sum(sizes.values())} texts, but there are {len(least)}.")
    ends = [least[end - 1] for end in accumulate(sizes.values())]

    def between(low: int, high: int) -> Iterator[Segment]:
        return (segment for number, segment in hashed() if low < number <= high)

    return {split: between(*bounds) for split, bounds in zip(sizes, pairwise([-1, *ends]), strict=True)}


class Part(Strict):
    """A raw file or all files of a raw folder sorted by name: as text, or as a range of bytes of any kind.

    Attributes:
        file: possible names of the raw file or folder; the first that exists is read, since two sources may have the
            same data in different files.
        start: number of skipped bytes.
        bytes: number of bytes; default: all remaining ones. With neither ``start`` nor ``bytes`` the file is text.
    """

    file: str | tuple[str, ...]
    start: int | None = Field(default=None, ge=0)
    bytes: int | None = Field(default=None, gt=0)


class RunningTextOptions(Strict):
    """Options of the reader ``running_text``.

    Attributes:
        parts: split to its parts in order.
        cut: of a text in one piece, which are the parts of train: the percentages of its characters that become valid
            and test; test is its end, and valid stands before that.
    """

    parts: dict[str, tuple[Part, ...]]
    cut: dict[Literal["valid", "test"], Annotated[int, Field(ge=1, le=40)]] | None = Field(default=None, min_length=2)

    @model_validator(mode="after")
    def _splits(self) -> RunningTextOptions:
        if self.cut and set(self.parts) != {"train"}:
            raise ValueError("'cut' needs parts of 'train' and no others")
        if not self.cut and (missing := {"train", "valid", "test"} - self.parts.keys()):
            raise ValueError(f"'parts' of {min(missing)} are missing")
        return self


def read_running_text(raw: Path, languages: Sequence[str], options: RunningTextOptions) -> Accompanied:
    """Running text for language models, of whole files or of ranges of their bytes, as ``<split>.text``.

    The corpus has no splits of sentences, only these files: sentences of running text are neither compared nor dropped,
    and white space is kept. Whole files are text, in Unicode's composed form (NFC), and each begins on a line of its
    own; of a range of bytes nothing is changed.

    Raises:
        ReplicationError: a file is missing, too short or, as a whole, not UTF-8.
    """
    folder = Path(tempfile.mkdtemp(dir=raw))
    for split, parts in options.parts.items():
        with (folder / f"{split}.text").open("wb") as target:
            target.writelines(_joined(raw, parts))
    if options.cut:
        _cut(folder, options.cut, ", ".join(str(part.file) for part in options.parts["train"]))
    return Accompanied({}, {path.name: path for path in listed(folder)})


def _cut(folder: Path, percent: Mapping[Literal["valid", "test"], int], name: str) -> None:
    """Cut a text in three, each time after the first line end behind the place, or else after the first space.

    What ends the text, or the split, is not behind the place: a text of one line has an end, too.
    """
    text = read_text(folder / "train.text")
    begins = [len(text)]  # from the end
    for share in (percent["test"], percent["valid"] + percent["test"]):
        place, end = len(text) * (100 - share) // 100, len(text[: begins[0]].rstrip())
        begins.insert(0, next((at + 1 for mark in "\n " if (at := text.find(mark, place, end)) >= 0), place))
    for split, (begin, end) in zip(("train", "valid", "test"), pairwise((0, *begins)), strict=True):
        (folder / f"{split}.text").write_text(text[begin:end], encoding="utf-8", newline="\n")
        if not text[begin:end].strip():
            raise ReplicationError(
                f"{name}: the text is too short to be cut, '{split}' would be empty; give more text, or other shares "
                "by 'reader.options.cut' of the card or '--percent' of 'data new'."
            )


def _joined(raw: Path, parts: Sequence[Part]) -> Iterator[bytes]:
    ended = True
    for part in parts:
        path = first_of(raw, [part.file] if isinstance(part.file, str) else part.file)
        for file in listed(path) if path.is_dir() else [path]:
            if part.start is not None or part.bytes is not None:
                yield from byte_range(file, part.start or 0, part.bytes)
                ended = True  # it may go on in the next range
                continue
            for line in text_lines(file, keepends=True):
                yield ("" if ended else "\n").encode() + opening.composed(line).encode()
                ended = line.endswith("\n")
