"""Parallel text in line-aligned files (plain, SGML or with tagged notes), in official splits."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, read_lines
from shared.errors import ReplicationError

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
# The files of IWSLT have lines with metadata between the sentences; title and description are translated too.
_NOTE = re.compile(r"\s*</?(?:url|talkid|keywords|speaker|reviewer|translator|doc)\b")
_TRANSLATED_NOTE = re.compile(r"</?(?:title|description)>")


class ParallelOptions(Strict):
    """Options of the reader ``parallel``.

    Attributes:
        parts: split to its parts in order; a part names a raw file per language (``.sgm`` or ``.xml``: SGML;
            else one segment per line; with ``.tags`` in the name: between lines of metadata).
        skip_incomplete: whether to leave out segments that lack a text, as in noisy crawled corpora.
        valid_every: for a corpus without valid: every n-th segment of train becomes valid.
    """

    parts: dict[str, tuple[dict[str, str], ...]] = Field(min_length=1)
    skip_incomplete: bool = False
    valid_every: int | None = Field(default=None, ge=2)

    @model_validator(mode="after")
    def _one_valid(self) -> ParallelOptions:
        if self.valid_every and not ("train" in self.parts and "valid" not in self.parts):
            raise ValueError("'valid_every' needs parts of 'train' and none of 'valid'")
        return self


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read the parts of every split segment by segment, so that a corpus may be larger than the memory.

    Raises:
        ReplicationError: the options are wrong; while reading: the files of a part differ in their number of
            segments, or a file is not UTF-8.
    """
    chosen = build(ParallelOptions, options, where="options of the reader 'parallel'")
    for split, parts in chosen.parts.items():
        for part in parts:
            if set(part) != set(languages):
                wanted = ", ".join(languages)
                raise ReplicationError(f"the reader 'parallel': a part of '{split}' does not have just {wanted}.")

    def segments(split: str) -> Iterator[Segment]:
        parts = [[part[language] for language in languages] for part in chosen.parts[split]]
        return _segments(raw, parts, chosen.skip_incomplete)

    corpus = {split: segments(split) for split in chosen.parts}
    if every := chosen.valid_every:
        corpus["valid"] = itertools.islice(segments("train"), every - 1, None, every)
        corpus["train"] = (segment for i, segment in enumerate(segments("train"), start=1) if i % every)
    return corpus


def _segments(raw: Path, parts: list[list[str]], skip_incomplete: bool) -> Iterator[Segment]:
    for names in parts:
        try:
            for texts in zip(*(_texts(raw / name) for name in names), strict=True):
                if all(texts) or not skip_incomplete:
                    yield Segment(texts)
        except UnicodeDecodeError as error:
            raise ReplicationError(f"{' or '.join(names)} is not UTF-8 text ({error.reason}).") from None
        except ValueError:
            raise ReplicationError(f"{' and '.join(names)} do not have equally many segments.") from None


def _texts(path: Path) -> Iterator[str]:
    if path.suffix in {".sgm", ".xml"}:
        document = path.read_text(encoding="utf-8")
        yield from (html.unescape(text).strip() for text in _SEGMENT.findall(document))
    elif ".tags" in path.suffixes:
        sentences = (line for line in read_lines(path) if not _NOTE.match(line))
        yield from (_TRANSLATED_NOTE.sub("", line).strip() for line in sentences)
    else:
        yield from (line.strip() for line in read_lines(path))
