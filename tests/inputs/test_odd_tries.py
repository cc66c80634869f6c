"""Odd inputs for the command ``try`` of the kinds that read no sentences: pictures, and symbols of a sequence."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import replications  # noqa: F401  before a project of toys puts its own in its place
from shared.pipeline.__main__ import main
from shared.tasks.captioning import preparation as caption_preparation
from shared.tasks.captioning import trial as captioning_trial
from tests.pipeline.test_contract import Paper, enter
from tests.pipeline.toys import write_project
from tests.tasks.captioning.squares import Colours


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the toys of both kinds have one trained variant."""
    root = write_project(tmp_path_factory.mktemp("odd") / "project")
    with pytest.MonkeyPatch.context() as patch:
        enter(root, patch)
        for kind in ("captioning", "sequences"):
            paper = Paper(kind, root)
            paper.prepare()
            paper.stage("train", "short")
    return root


@pytest.fixture
def tried(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], tuple[int, str]]:
    """From a kind and an input to the exit status and what is printed, an error without the word that begins it."""
    enter(project, monkeypatch)
    monkeypatch.setattr(captioning_trial, "fetch", lambda dataset: None)
    monkeypatch.setattr(caption_preparation, "fetch", lambda dataset, **_: None)
    monkeypatch.setattr(caption_preparation, "build_encoder", lambda config, **_: Colours())

    def asked(kind: str, text: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["try", f"toy_{kind}.short", text, "--scale", "smoke"])
        printed = capsys.readouterr()
        return status, printed.err if status else printed.out

    return asked


def png(mode: str, size: tuple[int, int] = (40, 30), file: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, file)
    return buffer.getvalue()


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is as large as that."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"")
    chunks = [struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in (head, data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


READ = {
    "one pixel": png("RGB", (1, 1)),
    "a strip": png("RGB", (3000, 1)),
    "a palette": png("P"),
    "see-through": png("RGBA"),
    "black and white": png("1"),
    "sixteen bits": png("I;16"),
    "for a printer": png("CMYK", file="JPEG"),
    "another format": png("RGB", file="GIF"),
}
NO_PICTURES = {
    "nothing": b"",
    "a text": b"no picture",
    "half of one": png("RGB", (400, 300))[:60],
    "its head alone": png("RGB")[:8],
    "a drawing": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
    "larger than any": claiming(60_000, 60_000),
}


@pytest.mark.parametrize("name", READ)
def test_pictures_of_any_form_have_a_caption(name: str, tried: Callable, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(READ[name])
    status, printed = tried("captioning", str(path))
    assert status == 0, printed
    assert "Output" in printed


@pytest.mark.parametrize("name", NO_PICTURES)
def test_what_is_no_picture_is_refused(name: str, tried: Callable, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(NO_PICTURES[name])
    status, said = tried("captioning", str(path))
    assert status == 2
    assert said.startswith(f"error: {path} cannot be read as a picture (")
    assert said.endswith(" for a picture of the test split.\n")


PLACES = {
    "a folder": "/", "a long name": "x" * 5_000, "a zero byte": "a\0b",
    "an address": "https://example.org/a.png", "no file": "none.png",
}  # fmt: skip
NUMBERS = ["test:-1", "test:8", "test:1.5", "test:", "test:x", f"test:{'9' * 30}", f"test:{'9' * 5_000}", "test:\u00b2"]


@pytest.mark.parametrize("where", [*PLACES.values(), *NUMBERS], ids=[*PLACES, *(text[:12] for text in NUMBERS)])
def test_where_there_is_no_picture_is_said_so(where: str, tried: Callable) -> None:
    status, said = tried("captioning", where)
    assert status == 2
    assert said.startswith("error: ")
    assert said.endswith(".\n")
    assert "\n" not in said[:-1]


SYMBOLS = {
    "ten thousand": "3 " * 10_000, "a huge number": "9" * 5_000, "zero": "0 1", "negative": "-1 2",
    "fractions": "1.5 2", "an exponent": "1e3", "other signs between": "1;2;3", "a zero byte": "1 \0 2",
    "letters": "one two", "the largest and one": "7 7",
}  # fmt: skip


@pytest.mark.parametrize("odd", SYMBOLS)
def test_what_are_no_symbols_is_refused(odd: str, tried: Callable) -> None:
    status, said = tried("sequences", SYMBOLS[odd])
    assert status == 2
    assert said.startswith("error: ")
    assert said.endswith(".\n")
    assert len(said) < 1_000


@pytest.mark.parametrize(("same", "plain"), [("3,1,4", "3 1 4"), (" 3\n1\t4 ", "3 1 4"), ("003 1 4", "3 1 4")])
def test_symbols_may_be_written_in_several_ways(same: str, plain: str, tried: Callable) -> None:
    first, second = tried("sequences", same), tried("sequences", plain)
    assert first == second
    assert first[0] == 0
