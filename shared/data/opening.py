"""Opening other people's files, strictly: text, tables, JSON and folders; an error names the file and the line."""

from __future__ import annotations

import csv
import json
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from shared.errors import ReplicationError

STUMBLES = (
    ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError, csv.Error,
    lzma.LZMAError, sqlite3.DatabaseError, tarfile.TarError, zipfile.BadZipFile, zlib.error, ExpatError,
)  # fmt: skip
"""What a reader raises where a file is not of the form that it expects."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say in one sentence that a file is not what its reader expects.

    Raises:
        ReplicationError: instead of any of :data:`STUMBLES`.
    """
    try:
        yield
    except STUMBLES as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ReplicationError(
            f"{what} cannot be read as its card says ({reason}); fetch it anew, or correct the card."
        ) from error


def text_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file, which may be packed as ``.xz``.

    A line ends with ``\n`` or ``\r\n``, which is taken off, and so is a byte order mark. No other character ends a
    line: parallel texts have them in the middle of sentences.

    Raises:
        ReplicationError: a byte is not UTF-8; names the line.
    """
    return (line.removesuffix("\n") for line in _decoded(path))


def read_text(path: Path) -> str:
    r"""The whole of a text file, as :func:`text_lines` reads it; every line that has an end has ``\n``."""
    return "".join(_decoded(path))


def _decoded(path: Path) -> Iterator[str]:
    with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                text = str(line, "utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ReplicationError(
                    f"{path.name} is not UTF-8 text: line {number} has the byte 0x{error.object[error.start]:02x}; "
                    "save it as UTF-8."
                ) from None
            yield f"{text[:-2]}\n" if text.endswith("\r\n") else text


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        ReplicationError: it is not UTF-8, or not JSON.
    """
    with reading(path.name):
        return json.loads(read_text(path))


def read_table(path: Path, *, delimiter: str, quoted: bool) -> Iterator[dict[str, str]]:
    """Yield the rows of a table whose first line names its columns; empty lines are no rows.

    Args:
        path: of the file.
        delimiter: what stands between two fields.
        quoted: whether a field may stand in ``"``, as in CSV; else every character counts.

    Raises:
        ReplicationError: a row has more or fewer fields, or its quotation marks do not match; names the line.
    """
    lines = text_lines(path)
    rows: Iterable[tuple[int, list[str]]] = enumerate((line.split(delimiter) for line in lines), start=1)
    if quoted:
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
        rows = ((reader.line_num, row) for row in reader)
    header: list[str] = []
    with reading(path.name):
        for number, row in rows:
            if row in ([], [""]):
                continue
            if not header:
                header = row
            elif len(row) == len(header):
                yield dict(zip(header, row, strict=True))
            else:
                raise ReplicationError(
                    f"{path.name}: line {number} has {len(row)} fields, not {len(header)} as its head; correct it."
                )


def listed(folder: Path, pattern: str = "*") -> list[Path]:
    """The files and folders that match the pattern, sorted; names that begin with a dot are no data."""
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))


def first_of(raw: Path, names: Iterable[str]) -> Path:
    """The first of these raw files or folders that exists, since two sources may have the same data in different files.

    Raises:
        ReplicationError: there is none.
    """
    for name in names:
        if (raw / name).exists():
            return raw / name
    raise ReplicationError(f"the raw file {' or '.join(names)} is not there; correct the card.")
