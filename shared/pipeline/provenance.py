"""Where a result comes from: code, data, parameters, versions, machine."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shared.claims.words import number_of

PACKAGES = ("torch", "lightning", "numpy", "sacrebleu", "sentencepiece")
SOURCES = ("shared", "replications", "data")
"""Folders whose files affect results, those that are not committed yet too. ``params.yaml`` is not one of them: it says
what is run and by how many workers, and what is run is in every record."""
WRITTEN = ("*dvc.lock", "*README.md", "*plan.json", "*search.json")
"""Files of these folders that stages or pages write; a change of them is not a change of the code."""


def sha256_of(paths: Iterable[Path]) -> str:
    """One hash over the names and contents of files and, recursively, of the files in folders."""
    digest = hashlib.sha256()
    for path in sorted(file for root in paths for file in ([root] if root.is_file() else root.rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def hash_of(value: Any) -> str:
    """A sha256 of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def now() -> str:
    """The time in UTC, to the second (ISO 8601)."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def fingerprint(parameters: Any, data: Path, code: Mapping[str, str]) -> str:
    """Identity of a run, which its checkpoints carry: hashes of its parameters, prepared data and training code."""
    text = json.dumps([parameters, dict(code)], sort_keys=True)
    return hashlib.sha256(f"{text}\n{sha256_of([data])}".encode()).hexdigest()


def environment(lock: Path) -> dict[str, Any]:
    """Code revision, versions and machine; everything in a run's record that training does not measure.

    Args:
        lock: the ``dvc.lock`` of the run's paper and scale; it may not exist yet.
    """
    return {
        **revision(),
        "dvc_lock_sha256": sha256_of([lock]) if lock.exists() else None,
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        **machine(),
    }


def machine() -> dict[str, Any]:
    """What the speed of a run depends on: the processor or GPU, and how many threads there are."""
    import torch

    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
    }


def revision() -> dict[str, Any]:
    """The commit, and whether the files that affect results differ from it or are not in it; without one, not."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {"git_commit": None, "git_dirty": False}
    excluded = [f":(exclude){path}" for path in WRITTEN]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *SOURCES, "pyproject.toml", *excluded)
    added = _git("ls-files", "--others", "--exclude-standard", "--", *SOURCES, *excluded)
    return {"git_commit": commit, "git_dirty": bool(changed or added)}


def peak_memory_mib() -> float:
    """The most memory this process has held, on the GPU if it used one, MiB."""
    import torch

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _git(*arguments: str) -> str | None:
    """What git says, or None where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {number_of(os.cpu_count() or 1, 'core')}"
