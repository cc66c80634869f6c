"""Text files in other encodings, with empty lines or endless ones: what every reader of text makes of them."""

from __future__ import annotations

import codecs
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inputs.raw_data import CASES, Case
from tests.inputs.test_hostile_data import outcome

MARK = codecs.BOM_UTF8
BYTES = ("running_text", "files", "pixels")
"""Readers of bytes, or of archives, which are no text."""
TEXTS = [case for case in CASES if case.reader not in BYTES and case.reader != "bible"]  # a database is no text either
every_text = pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.reader)


def rewritten(case: Case, raw: Path, change: Callable[[bytes], bytes]) -> None:
    """Write the raw files of a case, and change all that are text."""
    raw.mkdir()
    case.write(raw)
    changed = 0
    for path in sorted(each for each in raw.rglob("*") if each.is_file()):
        content = path.read_bytes()
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        path.write_bytes(change(content))
        changed += 1
    assert changed


@every_text
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_what_is_not_utf_8_is_refused_in_a_sentence(case: Case, encoding: str, tmp_path: Path) -> None:
    rewritten(case, tmp_path / "raw", lambda content: content.decode().encode(encoding))
    lines, said = outcome(case, tmp_path / "raw", tmp_path / "into")
    assert lines == {}
    assert said is not None
    assert said.endswith(".")


@every_text
@pytest.mark.parametrize("change", [lambda content: MARK + content, lambda content: content.replace(b"\n", b"\r\n")])
def test_a_byte_order_mark_and_other_line_ends_are_taken_off(case: Case, change: Callable, tmp_path: Path) -> None:
    whole, changed = tmp_path / "whole", tmp_path / "changed"
    rewritten(case, tmp_path / "raw", lambda content: content)
    rewritten(case, tmp_path / "other", change)
    assert outcome(case, tmp_path / "raw", whole) == outcome(case, tmp_path / "other", changed)
    for path in whole.iterdir():
        assert (changed / path.name).read_bytes() == path.read_bytes()


@every_text
def test_empty_lines_leave_columns_of_equal_length(case: Case, tmp_path: Path) -> None:
    rewritten(case, tmp_path / "raw", lambda content: b"\n" + content.replace(b"\n", b"\n\n"))
    lines, said = outcome(case, tmp_path / "raw", tmp_path / "into")
    assert (said is None) == bool(lines)
    assert said is None or said.endswith(".")
    for split in {name.split(".")[0] for name in lines}:
        assert len({count for name, count in lines.items() if name.split(".")[0] == split}) == 1


def test_parallel_lines_stay_beside_each_other_where_some_are_empty(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.reader == "parallel"]
    raw, into = tmp_path / "raw", tmp_path / "into"
    rewritten(case, raw, lambda content: content)
    english, german = ((raw / f"train.{language}") for language in ("en", "de"))
    english.write_text("\n\none\n\n", encoding="utf-8")
    german.write_text("null\n\neins\nzwei\n", encoding="utf-8")
    lines, said = outcome(case, raw, into)
    assert said is None
    assert lines["train.en"] == lines["train.de"] == 4
    read = [(into / f"train.{language}").read_text(encoding="utf-8").split("\n") for language in ("en", "de")]
    assert [*zip(*read, strict=True)][2] == ("one", "eins")


def test_a_sentence_of_ten_thousand_words_arrives_whole(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.reader == "parallel"]
    raw, into = tmp_path / "raw", tmp_path / "into"
    rewritten(case, raw, lambda content: content)
    for language in ("en", "de"):
        with (raw / f"train.{language}").open("a", encoding="utf-8") as column:
            column.write("word " * 10_000 + "\n")
    assert outcome(case, raw, into)[1] is None
    assert (into / "train.en").read_text(encoding="utf-8").splitlines()[-1].split() == ["word"] * 10_000
    shutil.rmtree(into)
