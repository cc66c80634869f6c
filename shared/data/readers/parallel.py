"""Parallel text that comes as line-aligned files, plain or SGML, in official splits."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from shared.config import Strict, build
from shared.data.splits import Corpus, Segment, read_lines
from shared.errors import ReplicationError

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


class ParallelOptions(Strict):
    """Options of the reader ``parallel``.

    Attributes:
        parts: split to its parts in order; a part names, per language, a raw file (``.sgm``: SGML, else plain
            text, one segment per line).
        skip_incomplete: leave out segments that lack a text, as noisy crawled corpora have them.
    """

    parts: dict[str, tuple[dict[str, str], ...]] = Field(min_length=1)
    skip_incomplete: bool = False


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Corpus:
    """Read the parts of every split segment by segment, so that a corpus may exceed the memory.

    Raises:
        ReplicationError: wrong options; while reading: files of a part that have unequally many segments,
            or are not UTF-8.
    """
    chosen = build(ParallelOptions, options, where="options of the reader 'parallel'")
    for split, parts in chosen.parts.items():
        for part in parts:
            if set(part) != set(languages):
                wanted = ", ".join(languages)
                raise ReplicationError(
                    f"the reader 'parallel': a part of '{split}' does not have just {wanted}."
                )
    return {
        split: _segments(
            raw, [[part[language] for language in languages] for part in parts], chosen.skip_incomplete
        )
        for split, parts in chosen.parts.items()
    }


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
    if path.suffix == ".sgm":
        document = path.read_text(encoding="utf-8")
        yield from (html.unescape(text).strip() for text in _SEGMENT.findall(document))
    else:
        yield from (line.strip() for line in read_lines(path))
