"""Opening other people's files, strictly: text, tables, JSON, pictures and folders; an error names file and line.

And the characters of their texts: in a normal form of Unicode, and as a terminal may be shown them.
"""

from __future__ import annotations

import csv
import errno
import io
import itertools
import json
import lzma
import math
import re
import sqlite3
import sys
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shared.errors import ReplicationError

if TYPE_CHECKING:
    from PIL import Image

_CHUNK = 1 << 20
csv.field_size_limit(sys.maxsize)
# Escapes of JSON; the group is half of a character beyond U+FFFF, without the other half.
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
# Python sorts the marks of a letter by insertion: 200,000 of them in an hour. So many signs in a row are sorted before.
_MANY = 1_000
_SIGNS = re.compile(rf"[^\w\s]{{{_MANY},}}")


def composed(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    """A text in a normal form of Unicode, in a time that grows with its length, however many marks a letter has."""
    return unicodedata.normalize(form, text if len(text) < _MANY else _SIGNS.sub(_in_order, text))


def _in_order(signs: re.Match[str]) -> str:
    """The same signs, the marks between two others sorted as they will be."""
    single = (part for sign in signs[0] for part in unicodedata.normalize("NFD", sign))
    runs = itertools.groupby(single, lambda sign: unicodedata.combining(sign) > 0)
    return "".join("".join(sorted(run, key=unicodedata.combining)) for _, run in runs)


def visible(text: str) -> str:
    """A text as it is, but for what cannot be seen or a terminal would obey, which is as Python writes it."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


@contextmanager
def reading(
    what: str, fault: str = "cannot be read as its card says", numbers: Collection[int | None] = (None, errno.EINVAL)
) -> Iterator[None]:
    """Say in one sentence that a file, or a line of one, is not what its reader expects.

    Args:
        what: the file, or the line.
        fault: what is wrong with it, a predicate.
        numbers: of errors of the system that such a fault causes; None is that of all other exceptions.

    Raises:
        ReplicationError: instead of whatever a reader or a library stumbles over.
        OSError: the system refuses a file, for another reason than damage.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ReplicationError) or getattr(error, "errno", None) not in numbers:
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ReplicationError(f"{what} {fault} ({reason}); fetch it anew, or correct it or its card.") from error


def text_lines(path: Path, *, keepends: bool = False, name: str = "") -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file, which may be packed as ``.xz``.

    A line ends with ``\n`` or ``\r\n``, or with ``\r`` in a file without ``\n``; the end is taken off, or with
    ``keepends`` becomes ``\n``, and a byte order mark is taken off, of whatever line, as files are run together. No
    other character ends a line: parallel texts have them in the middle of sentences. Errors call it ``name``, if its
    own is that of files in other folders, too.

    Raises:
        ReplicationError: a byte is not UTF-8, or is zero as in UTF-16; names the line. Or the ``.xz`` is damaged.
    """
    name = name or path.name
    with reading(name), path.open("rb") as plain:
        file = _unpacked(plain) if path.suffix.lower() == ".xz" else plain
        first = next(file, b"")
        old = b"\r" in first and not first.endswith(b"\n")  # as on a Macintosh of before 2001
        begin = first.replace(b"\r", b"\n").splitlines(keepends=True) if old else [first] * bool(first)
        for number, line in enumerate(itertools.chain(begin, file), start=1):
            try:
                # Where characters have two or four bytes, a zero stands before or behind a line end; an archive is
                # filled up with zeros, as is a file that was not yet written when its machine stopped.
                if b"\0\0\0\0" in line or (
                    number < 3 and b"\0" in (line[:1], line.rstrip(b"\r\n")[-1:] if number == 1 else b"")
                ):
                    raise UnicodeDecodeError("utf-8", b"\0", 0, 1, "another width")
                text = str(line, "utf-8").lstrip("\ufeff")
            except UnicodeDecodeError as error:
                raise ReplicationError(
                    f"{name} is not UTF-8 text: line {number} has the byte 0x{error.object[error.start]:02x}; "
                    "save it as UTF-8, or unpack it first."
                ) from None
            if text:  # there was more than a mark
                yield text.rstrip("\r\n") + "\n" * (keepends and text.endswith("\n"))


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of all streams of an ``.xz``; ``lzma.open`` ends without a word where a later one is bad.

    Raises:
        LZMAError, EOFError: it is damaged.
    """
    unpack, rest = lzma.LZMADecompressor(), b""
    while chunk := file.read(_CHUNK):
        while chunk or not (unpack.eof or unpack.needs_input):
            if unpack.eof:
                if not (chunk := chunk.lstrip(b"\0")):  # by which streams are padded
                    break
                unpack = lzma.LZMADecompressor()
            *lines, rest = (rest + unpack.decompress(chunk, _CHUNK)).split(b"\n")
            yield from (line + b"\n" for line in lines)
            chunk = unpack.unused_data
    if not unpack.eof:
        raise EOFError("it has no end")
    if rest:
        yield rest


def form_of(path: Path) -> str:
    """The suffix that says what a file holds: ``.tsv`` of ``a.tsv``, ``A.TSV`` and ``a.tsv.xz``."""
    return PurePath(path.name.lower().removesuffix(".xz")).suffix


def read_text(path: Path, name: str = "") -> str:
    r"""The whole of a text file, as :func:`text_lines` reads it; every line that has an end has ``\n``."""
    return "".join(text_lines(path, keepends=True, name=name))


def byte_range(path: Path, start: int, count: int | None) -> Iterator[bytes]:
    """Yield the bytes of a file after the first ``start``, ``count`` of them or all.

    Raises:
        ReplicationError: there are fewer.
    """
    with path.open("rb") as file:
        file.seek(start)
        left = path.stat().st_size - start if count is None else count
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            yield chunk
            left -= len(chunk)
    if left:
        raise ReplicationError(f"{path.name} is {abs(left):,} bytes shorter than the card says; fetch it anew.")


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a file of the project's own without their ``\n``; no other character ends a line."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def read_bytes(path: Path, start: int = 0, count: int | None = None) -> bytes:
    """What :func:`byte_range` yields, by default the whole file, in one piece."""
    return b"".join(byte_range(path, start, count))


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        ReplicationError: it is not UTF-8, or not JSON, then the line is named; an object has a key twice, or a number
            is NaN or infinite.
    """
    return _json(read_text(path), path.name, path, 1)


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place, for errors, and the value of each line of a file.

    Raises:
        ReplicationError: a line is empty, or no such JSON as :func:`read_json` reads; names it.
    """
    for number, line in enumerate(text_lines(path), start=1):
        place = f"{path.name}, line {number}"
        yield place, _json(line, place, path, number)


def _json(text: str, place: str, path: Path, first: int) -> Any:
    try:
        if half := next(filter(lambda found: found[1], _ESCAPE.finditer(text) if "\\u" in text else ()), None):
            raise json.JSONDecodeError("half of a character", text, half.start())
        return json.loads(text, object_pairs_hook=_each_once, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            place = f"{path.name}, line {first + error.lineno - 1},"
        raise ReplicationError(f"{place} is not JSON ({getattr(error, 'msg', error)}); correct it.") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError(f"an object has the key '{max(found, key=[key for key, _ in pairs].count)}' twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number")
    return number


def read_table(path: Path, delimiter: str, names: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place, for errors, and the fields of each row of a table.

    Empty lines are no rows.

    Args:
        path: of the file.
        delimiter: what stands between two fields. With ``,`` a field may stand in ``"``, as in CSV; else every
            character counts.
        names: of the fields; by default the first line has them.

    Raises:
        ReplicationError: a row has more or fewer fields, or their names once more, as where tables are joined, or its
            quotation marks do not match, or one stands behind a space that begins a field, as in ``a, "b"``, where
            programs disagree on what the field is; names the line.
    """
    header = [*names]
    for begin, row in table_rows(path, delimiter):
        if header and header in (row, [field.strip() for field in row]):
            raise ReplicationError(f"{path.name}: line {begin} has the names of the columns; take out this head.")
        if not header and len({*row}) == len(row):
            header = row
        elif len(row) == len(header):
            yield f"{path.name}, line {begin}", dict(zip(header, row, strict=True))
        else:
            wanted = f"not {len(header)} as its head" if header else "of which two have one name"
            raise ReplicationError(f"{path.name}: line {begin} has {len(row)} fields, {wanted}; correct it.")


def table_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield all rows of a table, each after the line in which it begins; errors as of :func:`read_table`."""
    if delimiter != ",":
        yield from ((begin, line.split(delimiter)) for begin, line in enumerate(text_lines(path), start=1) if line)
        return
    begin, taken = 1, list[str]()
    reader = csv.reader(_kept(text_lines(path), taken), strict=True)
    try:
        for row in reader:
            # In quotes such a field has its own marks twice; without, each program reads another text.
            if any(re.match(r'\s+"', each) and each.replace('"', '""') not in "".join(taken) for each in row):
                raise csv.Error("a space stands before a quotation mark")
            if row not in ([], [""]):
                yield begin, row
            begin = reader.line_num + 1
            taken.clear()
    except csv.Error as error:
        reason = str(error).partition(" - do you")[0]  # and then it speaks to programmers
        raise ReplicationError(f"{path.name}: what begins in line {begin} is no row ({reason}); correct it.") from None


def _kept(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    """Yield lines with their ends, which stay in ``taken`` too."""
    for line in lines:
        taken.append(f"{line}\n")
        yield taken[-1]


def read_database(path: Path, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a query finds in a file of SQLite; it is opened read-only, so that no journal is written."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection, reading(path.name):
        yield from connection.execute(query, values)


def read_picture(content: bytes) -> NDArray[np.uint8]:
    """The pixels of a file of a picture, as a viewer shows it: (height, width, 3) RGB.

    It is turned as its camera says, laid over white where it is transparent, and scaled to 8 bits; grey values of 32
    bits go from 0 to 255, or to 65,535 where one of them is larger, and floating-point numbers from 0 to 1 or to these.

    Raises:
        ValueError: it is no picture, is truncated, or has more pixels than Pillow takes for harmless.
    """
    from PIL import Image, ImageOps

    with _opened(content) as file:
        picture = ImageOps.exif_transpose(file)
        if not all(picture.size):
            raise ValueError("it has no pixel")
        if picture.mode[0] in "IF":
            values = np.asarray(picture, dtype=np.float64)
            if not np.isfinite(values).all():
                raise ValueError("it has values that are no numbers")
            bits = {"F": (1.0, 255.0, 65_535.0), "I": (255.0, 65_535.0)}.get(picture.mode, (65_535.0,))
            most = next((limit for limit in bits if values.max() <= limit), float(values.max()))
            clear = values == picture.info.get("transparency", math.nan)
            grey = np.where(clear, 255, np.rint(values.clip(min=0) * (255 / most)))
            picture = Image.fromarray(grey.astype(np.uint8))
        if picture.has_transparency_data:
            picture = picture.convert("RGBA")
            picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        return np.asarray(picture.convert("RGB"))


def picture_form(content: bytes) -> str:
    """Mode and size of a picture, such as ``RGB 640 x 480``, without decoding it.

    Raises:
        ValueError: it is no picture, or has more pixels than Pillow takes for harmless.
    """
    with _opened(content) as file:
        return f"{file.mode} {file.width} x {file.height}"


@contextmanager
def _opened(content: bytes) -> Iterator[Image.Image]:
    """A picture that is open; whatever its decoder stumbles over becomes a ValueError."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is odd; what is wrong is an error
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(content)) as file:
                yield file
        except Exception as error:
            raise ValueError(re.sub(r" <_io\..*>", "", f"{type(error).__name__}: {error}")) from error


def listed(folder: Path, pattern: str = "*") -> list[Path]:
    """The files and folders that match the pattern, sorted, without those that :func:`is_hidden` names."""
    return sorted(path for path in folder.glob(pattern) if not is_hidden(path.relative_to(folder)))


def is_hidden(path: PurePath) -> bool:
    """Whether a part of a path is no data: it begins with a dot, or is what systems leave in folders and archives."""
    return any(re.fullmatch(r"(?is)\..*|__MACOSX|thumbs\.db|desktop\.ini", part) for part in path.parts)


def first_of(raw: Path, names: Iterable[str]) -> Path:
    """The first of these raw files or folders that exists, since two sources may have the same data in different files.

    Raises:
        ReplicationError: there is none.
    """
    for name in names:
        if (raw / name).exists():
            return raw / name
    raise ReplicationError(f"the raw file {' or '.join(names)} is not there{twin_of(raw / name)}; correct the card.")


def twin_of(path: Path) -> str:
    """What :func:`twin` says of a file or folder that is not there, and of those beside it."""
    return twin(path.name, (each.name for each in listed(path.parent)))


def twin(name: str, names: Iterable[str]) -> str:
    """For an error on a name that is not there: the one that looks like it, and what tells them apart; or nothing."""

    def plain(text: str) -> str:
        return re.sub(r"\W", "", composed(text, "NFKC").casefold())

    like = next((each for each in names if each != name and plain(each) == plain(name)), None)
    return "" if like is None else f" (there is {like!a}, which is not {name!a})"
