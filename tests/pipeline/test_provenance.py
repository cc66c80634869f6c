"""Fingerprints: what a checkpoint belongs to, no more and no less."""

import json
import os
from pathlib import Path

import pytest
import torch

from shared.pipeline import provenance
from shared.pipeline.show import beside_committed
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


def test_the_environment_is_described_without_git(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    found = provenance.environment(LOCK)
    assert found["git_commit"] is None
    assert found["versions"]["torch"]
    assert found["threads"] >= 1
    assert provenance.peak_memory_mib() > 10


def test_processors_of_one_name_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "CPUINFO", tmp_path / "cpuinfo")
    facts = {"vendor_id": "AuthenticAMD", "model name": "AMD EPYC", "cpu family": 25, "model": 17, "flags": "fma sse"}

    def described(**changed):
        lines = [f"{key}\t: {value}" for key, value in (facts | changed).items()]
        (tmp_path / "cpuinfo").write_text("\n".join(lines) + "\n\nprocessor\t: 1\n")
        return provenance.machine()["cpu"]

    assert described().startswith("AMD EPYC (AuthenticAMD, family 25, model 17; fma; PyTorch uses ")
    assert len({described(), described(model=1), described(flags="fma avx512f")}) == 3
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another")
    assert "PyTorch uses another" in described()
    (tmp_path / "cpuinfo").unlink()
    assert "PyTorch uses another" in provenance.machine()["cpu"]


def test_verdicts_and_numbers_are_compared_with_the_committed_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reports/quick/bahdanau/claims.json"
    path.parent.mkdir(parents=True)

    def written(verdict, effect, claim="B15-C1"):
        path.write_text(json.dumps([{"id": claim, "verdict": verdict, "lead": {"effect": effect}}]))
        return beside_committed("bahdanau", "quick")

    assert written("reproduced", 1.0) == "There are no committed verdicts to compare these with."
    commit(tmp_path)
    assert written("reproduced", 1.0) == "The verdicts and their numbers are those committed."
    assert "verdicts are those committed. Numbers differ" in written("reproduced", 1.1)
    assert "on B15-C1 are not those committed" in written("contradicted", 1.0)
    assert "on B15-C1, B15-C2 are not" in written("reproduced", 1.0, claim="B15-C2")


PLACES = {
    "shared/model.py": True, "replications/a/bench/params.yaml": True, "data/new.yaml": True, "pyproject.toml": True,
    "params.yaml": False, "tests/test_model.py": False, "runs/quick/curve.csv": False, "shared/ignored.pyc": False,
    "replications/a/README.md": False, "replications/a/quick/dvc.lock": False,
}  # fmt: skip
"""Files, and whether a change of one is a change of what has made a result."""


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("path", PLACES)
def test_only_files_that_affect_results_make_a_run_one_of_uncommitted_code(path, committed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if committed:
        file.write_text("before")
    commit(tmp_path)
    assert provenance.environment(LOCK)["git_dirty"] is False
    file.write_text("after")
    assert provenance.environment(LOCK)["git_dirty"] is PLACES[path]
