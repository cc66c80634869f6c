"""What the kinds of corpora have in common on disk: line-aligned text files, and arrays that are mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.data import splits
from shared.errors import ReplicationError


def read_lines(path: Path) -> list[str]:
    """All lines of a text file, as `shared.data.splits.read_lines` reads them.

    Raises:
        ReplicationError: there is no such file.
    """
    try:
        return list(splits.read_lines(path))
    except FileNotFoundError:
        raise ReplicationError(
            f"{path} does not exist; run the fetch stage, and check split and language names."
        ) from None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write what :func:`read_lines` reads."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_columns(
    dataset: Path, split: str, languages: Sequence[str], *, optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The lines of ``<split>.<language>`` in a fetched folder, for each language and each that exists of ``optional``.

    Raises:
        ReplicationError: a file is missing, or they differ in length.
    """
    there = [*languages, *(name for name in optional if (dataset / f"{split}.{name}").exists())]
    columns = {name: read_lines(dataset / f"{split}.{name}") for name in there}
    if len({len(column) for column in columns.values()}) != 1:
        raise ReplicationError(
            f"the files of split '{split}' in {dataset} differ in length; fetch {dataset.name} again."
        )
    return columns


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``<name>.npy`` for each into ``folder``, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load_arrays(folder: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Map arrays of :func:`save_arrays` into memory, read-only.

    Raises:
        ReplicationError: a file is missing or cut short.
    """
    try:
        return [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]
    except (OSError, ValueError, EOFError) as error:
        raise ReplicationError(f"{folder} is incomplete ({error}); run the prepare stage again.") from None
