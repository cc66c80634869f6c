"""The page of licences and the bill of materials name every package of the lock and every card."""

import json
import re
import sys

import pytest

from shared.errors import ReplicationError
from shared.pipeline import licences
from shared.pipeline.licences import BILL, FAMILY, LOCK, PAGE, PIN, licences_of


def rows(page, part):
    section = page.partition(f"## {part}\n")[2].partition("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")][2:]


def test_the_files_are_of_the_lock_and_the_cards(root):
    page, bill = (root / PAGE).read_text(encoding="utf-8"), json.loads((root / BILL).read_text(encoding="utf-8"))
    pins = PIN.findall((root / LOCK).read_text(encoding="utf-8"))
    locked, elsewhere = {name: version for name, version, _ in pins}, {name for name, _, marker in pins if marker}
    listed = {each["name"]: each["version"] for each in bill["components"]}
    assert len(locked) > 100
    assert sorted(listed) == rows(page, "Packages"), "run: python -m shared.pipeline licences"
    assert {name: listed.get(name, version) for name, version in locked.items()} == locked
    assert locked.keys() - elsewhere <= listed.keys() <= locked.keys() | {*FAMILY}
    assert rows(page, "Data") == sorted(path.stem for path in (root / "data").glob("*.yaml"))
    assert "UNKNOWN" not in page


def test_the_bill_has_the_hashes_of_the_lock(root):
    bill = json.loads((root / BILL).read_text(encoding="utf-8"))
    found = {}
    for line in (root / LOCK).read_text(encoding="utf-8").splitlines():
        if pin := PIN.match(line):
            hashes = found.setdefault(pin[1], set())
        elif "--hash" in line:
            hashes.add(line.strip(" \\").removeprefix("--hash=sha256:"))
    for each in bill["components"]:
        hashed = [part for where in each.get("externalReferences", []) for part in where.get("hashes", [])]
        assert {part["content"] for part in hashed} == found.get(each["name"], set())
        assert each["licenses"][0]["license"]["name"]


@pytest.mark.parametrize(("said", "message"), [("UNKNOWN", "tiny is not installed here, or says"), (None, "tiny is")])
def test_a_package_that_says_nothing_is_refused_and_what_is_missing_is_named(said, message, monkeypatch):
    table = [] if said is None else [{"Name": "tiny", "License": said}]
    monkeypatch.setattr(licences, "_ran", lambda *_: json.dumps(table))
    with pytest.raises(ReplicationError, match=message):
        licences_of(["tiny"])
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ReplicationError, match=re.escape("install it with 'pip install -e '.[licences]'' first")):
        licences_of(["tiny"])
