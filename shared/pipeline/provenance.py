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
CPUINFO = Path("/proc/cpuinfo")
KINDS = {
    "vendor_id": "", "cpu family": "family ", "model": "model ", "CPU implementer": "implementer ", "CPU part": "part "
}  # fmt: skip
"""What tells processors of one name apart, as /proc/cpuinfo of x86 or ARM calls it, and what it is called here."""
INSTRUCTIONS = {
    "avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_tile",
    "asimd", "bf16", "sve", "sve2",
}  # fmt: skip
"""Those by which libraries choose how to add and multiply, and so how results are rounded."""
WRITTEN = ("*dvc.lock", "*README.md", "*plan.json", "*search.json", "*attempts.jsonl")
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
    versions = {"python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in PACKAGES}
    locked = sha256_of([lock]) if lock.exists() else None
    return {**revision(), "dvc_lock_sha256": locked, "versions": versions, **machine()}


def machine() -> dict[str, Any]:
    """What the speed of a run depends on: the processor or GPU, and how many threads there are."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {"device": device, "cpu": _cpu(), "threads": torch.get_num_threads()}


def revision() -> dict[str, Any]:
    """The commit, and whether the files that affect results differ from it or are not in it; without one, not."""
    commit = git("rev-parse", "HEAD")
    if commit is None:
        return {"git_commit": None, "git_dirty": False}
    excluded = [f":(exclude){path}" for path in WRITTEN]
    changed = git("status", "--porcelain", "--untracked-files=all", "--", *SOURCES, "pyproject.toml", *excluded)
    return {"git_commit": commit, "git_dirty": bool(changed)}


def peak_memory_mib() -> float:
    """The most memory this process has held, on the GPU if it used one, MiB."""
    import torch

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def git(*arguments: str) -> str | None:
    """What git says, or None where there is no git, no repository, or not what is asked for."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    """The processor as far as sums depend on it: name, kind, instruction sets and those of them that PyTorch uses."""
    import torch

    try:
        first = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    except OSError:
        first = []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first)}
    name = facts.get("model name") or platform.processor() or platform.machine()
    kind = ", ".join(f"{words}{facts[key]}" for key, words in KINDS.items() if key in facts)
    sets = " ".join(sorted({*(facts.get("flags") or facts.get("Features") or "").split()} & INSTRUCTIONS))
    known = [*filter(None, (kind, sets)), f"PyTorch uses {torch.backends.cpu.get_cpu_capability()}"]
    return f"{name} ({'; '.join(known)}), {number_of(os.cpu_count() or 1, 'core')}"
