"""Raw files that are damaged or not what they are called, cards that lead elsewhere: a sentence, and nothing else.

``--hypothesis-profile=fuzz`` damages the files of each reader 2,000 times instead of 40.
"""

import csv
import random
import re
import shutil
import struct
from pathlib import Path
from xml.parsers.expat import ExpatError

import pytest

from shared.data.fetch import fetch, naming_the_card
from shared.data.opening import read_lines
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError
from tests.data.odd import CARD, MANY
from tests.inputs.raw_data import CASES
from tests.pipeline.toys import write_yaml
from tests.refused import assert_refused, outcome

TIMES = 2_000 if MANY else 40
PIECE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|[A-Za-z_]+')
"""A text, a number or a word, as JSON and the tables have them."""
WRONG = [
    b"null", b"[]", b"{}", b"-1", b"1e999", b'""', b"true", b"9" * 40, b'"\\ud800"', b"NaN", b"\xff\xfe", b"\0",
    b"<script>alert(1)</script>", b"../../../etc/passwd", b"[" * 2_000,
]  # fmt: skip
PAGE = b"<!DOCTYPE html><html><head><title>404</title></head><body>Not found</body></html>"


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content of a file after one accident or attack."""
    start = draw.randrange(len(content))
    end = min(len(content), start + draw.randint(1, 40))
    match draw.randrange(8):
        case 0:
            return draw.choice([b"", PAGE])
        case 1:
            return content[:start]
        case 2:
            return content[:start] + content[end:]
        case 3:
            return content[:end] + content[start:end] * draw.randint(1, 3) + content[end:]
        case 4:
            return content[:start] + draw.randbytes(draw.randint(1, 20)) + content[start:]
        case 5:
            flipped = bytearray(content)
            flipped[start] ^= draw.randint(1, 255)
            return bytes(flipped)
    found = list(PIECE.finditer(content))
    if not found:
        return content[::-1]
    piece = draw.choice(found)
    return content[: piece.start()] + draw.choice(WRONG) + content[piece.end() :]


def written(case, raw, into):
    """Read and write, as fetching does; the number of lines of each file."""
    into.mkdir()
    with naming_the_card(raw, Path("data/made.yaml")):
        write_corpus(read(case.reader, raw, case.languages, case.options), case.languages, into, compared=case.compared)
    columns = {*case.languages, "key", "align"}
    return {path.name: sum(1 for _ in read_lines(path)) for path in into.iterdir() if path.suffix[1:] in columns}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.reader}-{case.options.get('format', '')}".strip("-"))
def test_a_damaged_file_gives_one_sentence_or_whole_columns(case, tmp_path):
    """What else may come of it fails: an exception that is not ours, a crash, columns of unequal length."""
    whole = tmp_path / "whole"
    whole.mkdir()
    case.write(whole)
    assert all(written(case, whole, tmp_path / "first").values())
    for left in whole.glob("tmp*"):
        shutil.rmtree(left)
    refused = 0
    for seed in range(TIMES):
        draw, raw, into = random.Random(seed), tmp_path / "raw", tmp_path / "into"
        for folder in (raw, into):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, raw)
        path = draw.choice(sorted(each for each in raw.rglob("*") if each.is_file()))
        path.write_bytes(damaged(path.read_bytes(), draw))
        lines, said = outcome(written, case, raw, into)
        refused += bool(said)
        for split in {name.split(".")[0] for name in lines or ()}:
            assert len({count for name, count in lines.items() if name.split(".")[0] == split}) == 1
    assert refused or case.reader in ("files", "running_text")  # these take any bytes
    assert {each.name for each in tmp_path.iterdir()} <= {"whole", "first", "raw", "into"}


@pytest.mark.parametrize("kind", [AttributeError, RecursionError, csv.Error, ExpatError, struct.error])
def test_a_reader_that_stumbles_over_any_form_is_said_with_its_card(kind, tmp_path):
    said = rf"^data/made\.yaml: a raw file cannot be read as its card says \({kind.__name__}: odd\); fetch it anew"
    with pytest.raises(ReplicationError, match=said), naming_the_card(tmp_path, Path("data/made.yaml")):
        raise kind("odd")


OUTSIDE = ["../secret", "/etc/passwd", "a/../../secret", "..", "..\\secret"]
OPTIONS = {
    "parallel": lambda path: {"parts": {"train": [{"en": path, "fr": "a"}]}},
    "labelled": lambda path: {"parts": {"train": ["a", path]}},
    "fasta": lambda path: {"file": path},
    "running_text": lambda path: {"parts": {"train": [{"file": ["a", path]}]}},
    "treebank": lambda path: {"folder": "wsj", "sections": {"train": [path]}},
    "photos": lambda path: {"captions": [path]},
}


@pytest.fixture
def card(tmp_path, monkeypatch):
    """Write the card ``evil`` with changes; the project has nothing else."""
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").write_text("a secret\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPLICATIONS_MIRROR", str(tmp_path / "mirror"))

    def write(**changes):
        own = {"id": "evil", "raw": {"a": {"sha256": "0" * 64}}}
        write_yaml(tmp_path / "data/evil.yaml", CARD | own | changes)

    return write


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("reader", OPTIONS)
def test_a_card_cannot_have_a_file_elsewhere_read(card, tmp_path, reader, path):
    card(reader={"name": reader, "options": OPTIONS[reader](path)})
    assert_refused(r"^data/evil\.yaml: .*reader.*", fetch, "evil")
    assert not any(each.name.startswith("evil") for each in (tmp_path / "data").iterdir() if each.is_dir())


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_card_cannot_write_elsewhere(card, tmp_path, path):
    before = sorted(tmp_path.rglob("*"))
    reader = {"name": "files", "options": {}}
    for changes in (
        {"id": path},
        {"raw": {path: {"sha256": "0" * 64}}},
        {"sources": [{"kind": "mirror", "folder": path}]},
        {"sources": [{"kind": "npm", "package": "a@1.0.0", "sha256": "0" * 64, "members": {"a": path}}]},
        {"files": {path: "0" * 64}},
    ):
        card(reader=reader, **changes)
        assert_refused(r"^data/evil\.yaml: ", fetch, "evil")
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "data/evil.yaml"])


def test_a_card_runs_no_code(card, tmp_path):
    made = tmp_path / "made"
    card()
    path = tmp_path / "data/evil.yaml"
    path.write_text(path.read_text() + f"title2: !!python/object/apply:os.mkdir [{made}]\n")
    assert_refused(r"data/evil\.yaml is not valid YAML", fetch, "evil")
    assert not made.exists()


def test_a_package_name_is_no_option_of_its_client(card, tmp_path):
    """What begins with a dash would be an option, and what has a slash a folder or an address."""
    member = {"sha256": "0" * 64, "members": {"a": "a"}}
    evil = ["--index-url=http://x", "-e", "../a", "git+https://x", "a@file:/etc", "a==1; os_name", "a b"]
    for name in evil:
        for source in (
            {"kind": "pip", "wheels": [{"requirement": name} | member]},
            {"kind": "npm", "package": name} | member,
            {"kind": "apt", "packages": {name: {"a": "a"}}},
        ):
            card(reader={"name": "files"}, sources=[source])
            assert_refused(r"^data/evil\.yaml: .*sources", fetch, "evil")
