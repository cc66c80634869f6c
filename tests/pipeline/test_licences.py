"""The page of licences and the bill of materials name every package of the lock and every card."""

import json
import re
from email.message import Message

import pytest

from shared.errors import ReplicationError
from shared.pipeline import licences
from shared.pipeline.licences import BILL, LOCK, PAGE, PIN, write_licences

LOCKED = """# a lock
{name}==1.0 \\
    --hash=sha256:0a \\
    --hash=sha256:0b
other==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:0c
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose lock has one package that this platform needs."""
    for folder in (".ci", "docs", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["pytest==1.0"]')
    monkeypatch.chdir(tmp_path)

    def locked(name):
        (tmp_path / LOCK).write_text(LOCKED.format(name=name))
        return tmp_path

    return locked


def rows(page, part):
    section = page.partition(f"## {part}\n")[2].partition("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")][2:]


def test_the_files_are_of_the_lock_and_the_cards(root):
    page, bill = (root / PAGE).read_text(encoding="utf-8"), json.loads((root / BILL).read_text(encoding="utf-8"))
    locked = {name: version for name, version, _ in PIN.findall((root / LOCK).read_text(encoding="utf-8"))}
    markers = {name for name, _, marker in PIN.findall((root / LOCK).read_text(encoding="utf-8")) if marker}
    listed = {each["name"]: each["version"] for each in bill["components"]}
    assert [*listed] == rows(page, "Packages")
    assert {name: listed.get(name, version) for name, version in locked.items()} == locked
    assert locked.keys() - markers <= listed.keys() <= locked.keys() | {"torch", "torchvision"}
    assert rows(page, "Data") == sorted(path.stem for path in (root / "data").glob("*.yaml"))
    assert "UNKNOWN" not in page


def test_the_bill_has_the_hashes_of_the_lock(root):
    bill = json.loads((root / BILL).read_text(encoding="utf-8"))
    lock, found = (root / LOCK).read_text(encoding="utf-8"), {}
    for line in lock.splitlines():
        if pin := PIN.match(line + "\n"):
            hashes = found.setdefault(pin[1], [])
        elif "--hash" in line:
            hashes.append(line.strip(" \\").removeprefix("--hash=sha256:"))
    for each in bill["components"]:
        assert each["name"] in found or "externalReferences" not in each
        for reference in each.get("externalReferences", []):
            assert {hashed["alg"] for hashed in reference["hashes"]} == {"SHA-256"}
            assert [hashed["content"] for hashed in reference["hashes"]] == found[each["name"]]
    assert {each["name"] for each in bill["components"] if "externalReferences" not in each} == {"torch", "torchvision"}


def test_packages_of_other_platforms_are_left_out(project):
    folder = project("pytest")
    write_licences()
    bill = json.loads((folder / BILL).read_text())
    assert [(each["name"], each["version"], each["purl"]) for each in bill["components"]] == [
        ("pytest", "1.0", "pkg:pypi/pytest@1.0")
    ]
    assert bill["components"][0]["externalReferences"] == [
        {
            "type": "distribution",
            "url": "https://pypi.org/simple/pytest/",
            "hashes": [{"alg": "SHA-256", "content": "0a"}, {"alg": "SHA-256", "content": "0b"}],
        }
    ]
    assert re.search(r"^\| pytest \| 1.0 \| MIT \|$", (folder / PAGE).read_text(), re.MULTILINE)


def test_a_field_that_a_package_lacks_is_no_error(project, monkeypatch):
    """The backport of importlib.metadata, once imported, raises KeyError where the standard library gives None."""

    class Backport(Message):
        def __getitem__(self, name):
            if name not in self:
                raise KeyError(name)
            return super().__getitem__(name)

    project("pytest")
    said = Backport()
    said["License-Expression"] = "MIT"
    monkeypatch.setattr(licences.importlib.metadata, "metadata", lambda name: said)
    write_licences()
    assert "| pytest | 1.0 | MIT |" in PAGE.read_text()


def test_a_package_that_is_not_installed_is_named(project):
    project("no-such-package")
    with pytest.raises(ReplicationError, match="has no-such-package, which is not installed here"):
        write_licences()


def test_a_package_that_says_nothing_of_its_licence_is_refused(project, monkeypatch):
    project("pytest")
    said = Message()
    said["License"] = "UNKNOWN"
    monkeypatch.setattr(licences.importlib.metadata, "metadata", lambda name: said)
    monkeypatch.setattr(licences.importlib.metadata, "files", lambda name: None)
    with pytest.raises(ReplicationError, match="pytest says nothing of its licence"):
        write_licences()
