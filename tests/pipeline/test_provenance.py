"""Fingerprints: what a checkpoint belongs to, no more and no less."""

import os
import subprocess
from pathlib import Path

import pytest

from shared.pipeline import provenance
from tests.pipeline.scratch import commit

LOCK = Path("replications/bahdanau/quick/dvc.lock")


def test_a_fingerprint_is_of_parameters_code_and_data_and_of_no_times(tmp_path):
    def fingerprint(parameters=("a", 1), **code):
        return provenance.fingerprint(list(parameters), tmp_path, {"model.py": "1"} | code)

    array = tmp_path / "array.npy"
    array.write_bytes(b"12345")
    before = fingerprint()
    os.utime(array, (0, 0))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "run.pyc").write_bytes(b"x")
    assert fingerprint() == before
    array.write_bytes(b"12346")
    assert len({before, fingerprint(), fingerprint(("a", 2)), fingerprint(loop="2")}) == 4


def test_an_added_file_changes_a_folders_hash(tmp_path):
    (tmp_path / "a").write_text("1")
    before = provenance.sha256_of([tmp_path])
    (tmp_path / "b").write_text("")
    assert provenance.sha256_of([tmp_path]) != before


def test_the_environment_is_described_without_git(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    found = provenance.environment(LOCK)
    assert found["git_commit"] is None
    assert found["versions"]["torch"]
    assert found["threads"] >= 1
    assert provenance.peak_memory_mib() > 10


@pytest.mark.parametrize(
    ("path", "dirty"),
    [
        ("shared/model.py", True), ("replications/a/bench/params.yaml", True), ("pyproject.toml", True),
        ("params.yaml", False), ("tests/test_model.py", False), ("runs/quick/curve.csv", False),
        ("replications/a/README.md", False), ("replications/a/quick/dvc.lock", False),
    ],
)  # fmt: skip
def test_only_files_that_affect_results_are_a_change_of_what_made_one(path, dirty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("before")
    author = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "the project"]):
        subprocess.run(["git", *author, *command], check=True)
    assert provenance.environment(LOCK)["git_dirty"] is False
    file.write_text("after")
    assert provenance.environment(LOCK)["git_dirty"] is dirty


@pytest.mark.parametrize(
    ("path", "dirty"),
    [
        ("shared/attention/new.py", True), ("replications/new/model.py", True), ("data/new.yaml", True),
        ("notes.txt", False), ("shared/ignored.pyc", False), ("runs/quick/curve.csv", False),
        ("replications/new/README.md", False), ("replications/new/quick/dvc.lock", False),
    ],
)  # fmt: skip
def test_source_that_was_never_committed_is_a_change(path, dirty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    subprocess.run(["git", "init", "-q"], check=True)
    commit(tmp_path)
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("new")
    assert provenance.environment(LOCK)["git_dirty"] is dirty
