"""What a project's files hold, as hashes, less the few fields that say how long something took or when it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

RUN_TIMES = (
    "finished", "peak_memory_mib", "process_seconds", "processor_seconds", "tokens_per_second", "wall_seconds",
)  # fmt: skip
"""Fields of ``run.json`` that differ between two runs that nobody has disturbed."""
COST_TIMES = ("processor_seconds",)
"""Likewise of ``evaluation/costs.json``."""
FEATURES_TIMES = ("images_per_second", "seconds")
"""Likewise of ``features/<task>.json``."""
CHECKPOINT_TIMES = ("seconds", "processor_seconds")
"""Likewise of what Throughput keeps in a checkpoint."""
NOT_RESTORED = ("current_score",)
"""What Lightning's ModelCheckpoint writes into a checkpoint, never reads, and forgets when a run is continued."""
LEFT_OUT = {".dvc", ".git", ".locks", "__pycache__", "dvc.lock"}
"""What is DVC's and git's own; locks name processes, DVC's lock has hashes of files whose times differ."""


def marks(folder: Path) -> dict[str, str]:
    """Every file of a folder to the hash of what it holds; also every empty folder, and every link."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        for name in sorted({*files} - LEFT_OUT):
            path = Path(place, name)
            found[path.relative_to(folder).as_posix()] = mark(path)
        if not folders and not files:
            found[f"{Path(place).relative_to(folder).as_posix()}/"] = "empty"
    return found


def mark(path: Path) -> str:
    """The hash of a file."""
    if path.is_symlink():
        return f"to {path.readlink()}"
    if path.suffix == ".ckpt":
        return hashlib.sha256("\n".join(_lines(_checkpoint(path))).encode()).hexdigest()
    if times := _times(path):
        content = {key: value for key, value in json.loads(path.read_text()).items() if key not in times}
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _times(path: Path) -> tuple[str, ...]:
    """The fields of a file that differ."""
    if path.suffix == ".json" and path.parent.name == "features":
        return FEATURES_TIMES
    return {"run.json": RUN_TIMES, "costs.json": COST_TIMES}.get(path.name, ())


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """What the other has too much, too little or otherwise."""
    return (
        [f"{name} is missing" for name in one.keys() - other.keys()]
        + [f"{name} is left over" for name in other.keys() - one.keys()]
        + [f"{name} differs" for name in one.keys() & other.keys() if one[name] != other[name]]
    )


def _checkpoint(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    for callback, state in content.get("callbacks", {}).items():
        for name in CHECKPOINT_TIMES if callback == "Throughput" else NOT_RESTORED:
            state.pop(name, None)
    return content


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """A line for every value in a nested one."""
    if isinstance(value, dict):
        for key in value:
            yield from _lines(value[key], f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _lines(each, f"{name}.{number}")
    elif isinstance(value, torch.Tensor):
        content = value.detach().contiguous().view(-1).view(torch.uint8) if value.numel() else value
        yield f"{name} {value.dtype} {tuple(value.shape)} {hashlib.sha256(content.numpy().tobytes()).hexdigest()}"
    else:
        yield f"{name} {value!r}"
