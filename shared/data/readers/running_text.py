"""Running text for language models: unchanged bytes of whole files or of parts of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.splits import Accompanied
from shared.errors import ReplicationError

_CHUNK = 1 << 20


class Part(Strict):
    """A range of bytes of a raw file, or all files of a raw folder sorted by name.

    Attributes:
        file: possible names of the raw file or folder; the first that exists is read, since two sources may have the
            same data in different files.
        start: number of skipped bytes.
        bytes: number of bytes; default: all remaining ones.
    """

    file: str | tuple[str, ...]
    start: int = Field(default=0, ge=0)
    bytes: int | None = Field(default=None, gt=0)


class RunningTextOptions(Strict):
    """Options of the reader ``running_text``.

    Attributes:
        parts: split to its parts in order.
    """

    parts: dict[str, tuple[Part, ...]]

    @model_validator(mode="after")
    def _splits(self) -> RunningTextOptions:
        if missing := {"train", "valid", "test"} - self.parts.keys():
            raise ValueError(f"'parts' of {min(missing)} are missing")
        return self


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Accompanied:
    """Write ``<split>.text`` for every split.

    The corpus has no splits of sentences, only these files: sentences of running text are neither compared nor dropped,
    and white space is kept.

    Raises:
        ReplicationError: the card has languages or wrong options, or a file is missing or too short.
    """
    if languages:
        raise ReplicationError("the reader 'running_text' has no languages; leave languages and splits empty.")
    chosen = build(RunningTextOptions, options, where="options of the reader 'running_text'")
    folder = raw / "splits"
    folder.mkdir()
    files: dict[str, str | Path] = {}
    for split, parts in chosen.parts.items():
        path = folder / f"{split}.text"
        with path.open("wb") as target:
            for part in parts:
                for file in _files(raw, part):
                    _copy(file, target, part)
        files[path.name] = path
    return Accompanied({}, files)


def _files(raw: Path, part: Part) -> list[Path]:
    names = [part.file] if isinstance(part.file, str) else part.file
    path = next((raw / name for name in names if (raw / name).exists()), None)
    if path is None:
        raise ReplicationError(f"the raw file {' or '.join(names)} is not there; correct the card.")
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _copy(file: Path, target: BinaryIO, part: Part) -> None:
    with file.open("rb") as source:
        source.seek(part.start)
        if part.bytes is None:
            shutil.copyfileobj(source, target)
            return
        left = part.bytes
        while left and (chunk := source.read(min(left, _CHUNK))):
            target.write(chunk)
            left -= len(chunk)
        if left:
            raise ReplicationError(f"{file.name} is {left:,} bytes shorter than the card says; fetch it anew.")
