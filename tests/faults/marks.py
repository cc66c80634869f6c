"""What a project's files hold, as hashes, less the few fields that say how long something took or when it was."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

TIMES = {
    "finished", "peak_memory_mib", "process_seconds", "processor_seconds", "tokens_per_second", "wall_seconds",
    "images_per_second", "seconds",
}  # fmt: skip
"""Fields of records and checkpoints that differ between two runs that nobody has disturbed."""
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
        content = torch.load(path, weights_only=True, map_location="cpu")
    elif path.name in ("run.json", "costs.json") or (path.suffix == ".json" and path.parent.name == "features"):
        content = json.loads(path.read_text())
    else:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    kept = {name: value for name, value in content.items() if name not in TIMES}
    return hashlib.sha256("\n".join(_lines(kept)).encode()).hexdigest()


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """What the other has too much, too little or otherwise."""
    return (
        [f"{name} is missing" for name in one.keys() - other.keys()]
        + [f"{name} is left over" for name in other.keys() - one.keys()]
        + [f"{name} differs" for name in one.keys() & other.keys() if one[name] != other[name]]
    )


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
