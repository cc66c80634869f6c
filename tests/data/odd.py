"""Texts, names and files that are odd but legal, drawn by hypothesis together with what they say.

Each fuzz test draws :data:`EXAMPLES`: the same 200 every time, or 20,000 new ones with ``--hypothesis-profile=fuzz``.
"""

import io
import json
import lzma
import re
import sqlite3
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from PIL import Image

MANY = settings.default.max_examples > 200
EXAMPLES = settings(
    max_examples=max(settings.default.max_examples, 200), derandomize=not MANY, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
"""How many examples a fuzz test draws, whatever time a busy machine takes for them."""

PIECES = [
    *"aB z09.,:;!?-+*/=<>#%&@$^~`|'\"\\()[]{}_",
    "´", "  ", "\t", "\xa0", "\u202f", "\u3000", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1f",
    "\x1a", "\x08", "\x7f", "\x00", "\r", "\ufeff", "\xad", "\u200b", "\u200c", "\u200d", "\u202e", "\u2066",
    "e\u0301", "é", "\u0301", "\u0307", "\u0338", "ﬁ", "½", "™", "…", "ｗ", "▁", "▅", "\ue000", "\ue0000",
    "\uffff", "�", "<unk>", "<s>", "</s>", "<pad>", "|||", "&amp;", "&#10;", "😀", "👩🏽\u200d🔬", "वह आया",
    "वह आयी", "كَتَبَ", "שָׁ", "한", "한", "٣", "²", "Ⅷ", "ß", "ẞ", "İ", "ı", "ſ", "ς", "Σ", "ΐ", "Ϊ\u0301",
    "ǆ", "NaN", "\\ud83d", "\\n", "null", "«", "»", "’", "--", "-LRB-", "\U000e0001", "\U0010ffff", "𝐀",
]  # fmt: skip
"""What texts are made of: what readers of other people's files have stumbled over."""
PIECE = st.sampled_from(PIECES) | st.characters(codec="utf-8", exclude_characters="\n")
LINE = st.lists(PIECE, max_size=6).map(lambda parts: re.sub("^[\ufeff\0]+|[\r\0]+$", "", "".join(parts)))
"""A line of any text; a mark at its begin would be none of it, nor a part of a line end."""
WORD = st.lists(PIECE, max_size=3).map(lambda parts: "w" + "".join("".join(parts).split()))
"""What no white space is in."""
NAME = st.lists(st.sampled_from([
    *"aAb1 ._-#%&'\",;~*?[]\\$", "  ", "..", "01", "10", "²", "…", "é", "e\u0301", "\u202f", "\u00a0", "\u200b",
    "\u202e", "😀", "ﬁ", "\u2028", "\x85", "\x1f", "\u064e",
]), max_size=4).map(lambda parts: "".join(["n", *parts]))  # fmt: skip
"""A name of a file, to the byte."""
HIDDEN = st.sampled_from([".ipynb_checkpoints", "__MACOSX", ".git", ".DS_Store", "Thumbs.db", "desktop.ini", "._n"])
"""Names of files and folders that programs leave behind."""


SPLITS = ("train", "valid", "test")
CARD = {
    "id": "toy", "title": "Toy", "licence": "none", "citation": "none", "languages": {"en": "English", "fr": "French"},
    "needs_bytes": 100_000, "sources": [{"kind": "mirror", "folder": "toy"}], "splits": dict.fromkeys(SPLITS, "a"),
    "traps": [],
}  # fmt: skip
"""A card, without its raw files and its reader."""


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder for one example."""
    with tempfile.TemporaryDirectory(prefix="odd") as name:
        yield Path(name)


@st.composite
def texts(draw, lines=None):
    """The bytes of a text file and its lines: with any line ends, with and without a mark and an end of the last."""
    content = draw(st.lists(LINE, max_size=6)) if lines is None else lines
    style = draw(st.sampled_from(["\n", "\r\n", "\r\r\n", "\r", "mixed"]))
    ends = [draw(st.sampled_from(["\n", "\r\n"])) if style == "mixed" else style for _ in content]
    if ends and draw(st.booleans()):
        ends[-1] = ""
    if not any("\n" in end for end in ends):  # then a carriage return ends a line
        content = [line.replace("\r", "") for line in content]
    text = "".join(line + end for line, end in zip(content, ends, strict=True))
    if ends and not ends[-1] and not content[-1]:
        content = content[:-1]
    return ("\ufeff" * draw(st.integers(0, 2)) + text).encode(), content


def packed(content: bytes, path: Path) -> bytes:
    """The bytes as they are in a file of that name."""
    return lzma.compress(content, preset=0) if path.suffix == ".xz" else content


def encoded(picture, kind="PNG", **options) -> bytes:
    """The file of a picture, or of an array of its pixels."""
    buffer = io.BytesIO()
    (picture if isinstance(picture, Image.Image) else Image.fromarray(picture)).save(buffer, kind, **options)
    return buffer.getvalue()


def idx(images) -> bytes:
    """Grey pictures (N, height, width) in the form of MNIST."""
    return b"\0\0\x08\x03" + struct.pack(">3I", *images.shape[:3]) + images.tobytes()


def cifar(images) -> bytes:
    """Pictures (N, 32, 32, 3) in the form of CIFAR-10, each with a class and a plane of each colour after the other."""
    return b"".join(bytes([number % 10]) + image.transpose(2, 0, 1).tobytes() for number, image in enumerate(images))


def bible(path, rows) -> None:
    """A database of verses."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE bible (bbName TEXT, bNumber INT, cNumber INT, vNumber INT, vText TEXT)")
        connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", rows)


def protein(accession, letters, name="Uncharacterized protein") -> str:
    """An entry of UniProt's FASTA."""
    return f">tr|{accession}|{accession}_X {name} OS=Some thing (strain A=1) PE=4 SV=1\n{letters}\n"


def described(photos) -> str:
    """Captions in the form of Karpathy's files, of the name, the split and the captions of each photo."""
    images = [{"filename": name, "split": split, "sentences": [{"raw": text} for text in texts]}
              for name, split, texts in photos]  # fmt: skip
    return json.dumps({"images": images}, indent=1)


ARCHIVES = {"zip": None, "tar": "w", "tgz": "w:gz", "txz": "w:xz"}


class Link(bytes):
    """A type of tar's: of a link or a device. A zip has links alone."""


def archive(path, members) -> Path:
    """An archive of pairs of a name and the bytes of a file, or a link."""
    if path.suffix.lower() in (".zip", ".whl"):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members:
                info = zipfile.ZipInfo(name)
                if isinstance(content, Link):
                    info.external_attr, content = 0o120777 << 16, b"/etc/passwd"
                file.writestr(info, content, zipfile.ZIP_DEFLATED)
        return path
    with tarfile.open(path, ARCHIVES[path.suffix[1:].lower()], format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, Link):
                info.type, info.linkname = bytes(content), "/etc/passwd"
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path
