"""Fingerprints: what a checkpoint belongs to, no more and no less."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shared.pipeline import provenance
from shared.pipeline.code import code_of
from tests.pipeline.scratch import commit

LOCK = Path("replications/bahdanau/quick/dvc.lock")


@pytest.fixture
def project(tmp_path, monkeypatch):
    for source in (Path("shared"), Path("replications")):
        shutil.copytree(source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "array.npy").write_bytes(b"12345")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fingerprint(parameters=("a", 1)):
    return provenance.fingerprint(list(parameters), Path("prepared"), code_of("translation", "bahdanau")["train"])


def append(path, text="changed = True"):
    with path.open("a") as file:
        file.write(f"\n{text}\n")


@pytest.mark.parametrize(
    "path",
    [
        "replications/bahdanau/model.py",
        "shared/attention/additive.py",
        "shared/layers/gated_recurrence.py",
        "shared/training/run.py",
        "shared/data/batching.py",
        "prepared/array.npy",
    ],
)
def test_a_change_of_code_or_data_changes_it(path, project):
    before = fingerprint()
    append(project / path)
    assert fingerprint() != before


@pytest.mark.parametrize(
    "path",
    [
        "shared/reports/figures.py",
        "shared/claims/verdicts.py",
        "shared/decoding/beam.py",
        "replications/luong/model.py",
        "shared/attention/alignments.py",
    ],
)
def test_code_that_does_not_train_it_leaves_it(path, project):
    before = fingerprint()
    append(project / path)
    assert fingerprint() == before


def test_a_comment_leaves_it(project):
    before = fingerprint()
    append(project / "replications" / "bahdanau" / "model.py", "# a comment")
    assert fingerprint() == before


def test_parameters_change_it_and_times_and_bytecode_do_not(project):
    before = fingerprint()
    assert fingerprint(("a", 2)) != before
    os.utime(project / "shared" / "training" / "run.py", (0, 0))
    cache = project / "shared" / "training" / "__pycache__"
    cache.mkdir()
    (cache / "run.pyc").write_bytes(b"x")
    assert fingerprint() == before


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
