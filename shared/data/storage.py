"""Storage for all kinds of corpora: line-aligned text files, and memory-mapped arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.data import splits
from shared.errors import ReplicationError


def read_lines(path: Path) -> list[str]:
    """Return all lines of a text file, as `shared.data.splits.read_lines` reads them.

    Raises:
        ReplicationError: the file does not exist.
    """
    try:
        return list(splits.read_lines(path))
    except FileNotFoundError:
        raise ReplicationError(
            f"{path} does not exist; run the fetch stage, and check split and language names."
        ) from None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines for :func:`read_lines`."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_columns(
    dataset: Path, split: str, languages: Sequence[str], *, optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return the lines of ``<split>.<language>`` for each language and for each of ``optional`` that has a file.

    Raises:
        ReplicationError: a file is missing, or the files differ in length.
    """
    there = [*languages, *(name for name in optional if (dataset / f"{split}.{name}").exists())]
    columns = {name: read_lines(dataset / f"{split}.{name}") for name in there}
    if len({len(column) for column in columns.values()}) != 1:
        raise ReplicationError(
            f"the files of split '{split}' in {dataset} differ in length; fetch {dataset.name} again."
        )
    return columns


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write each array to ``<name>.npy`` in ``folder``, which is created if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load_arrays(folder: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Map arrays of :func:`save_arrays` into memory, read-only.

    Raises:
        ReplicationError: a file is missing or truncated.
    """
    try:
        return [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]
    except (OSError, ValueError, EOFError) as error:
        raise ReplicationError(f"{folder} is incomplete ({error}); run the prepare stage again.") from None
