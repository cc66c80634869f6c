"""Storage for all kinds of corpora: line-aligned text files, memory-mapped arrays, and a summary with settings."""

from __future__ import annotations

import errno
import fcntl
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shared.config import Strict, flat
from shared.data import opening
from shared.errors import ReplicationError
from shared.records import read_record

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
"""Errors of file systems without locks, where users must make sure that a thing is done once at a time."""
SUMMARY = "summary.json"
_SETTINGS = "settings"


def read_lines(path: Path) -> list[str]:
    """Return all lines of a text file, as `shared.data.opening.read_lines` reads them.

    Raises:
        ReplicationError: the file does not exist.
    """
    try:
        return list(opening.read_lines(path))
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


@contextmanager
def reading_arrays(path: Path, advice: str) -> Iterator[None]:
    """Say in one sentence that numpy cannot read a file, and what to do about it.

    Args:
        path: of the file, or of its folder.
        advice: a clause, such as ``run the prepare stage again``.

    Raises:
        ReplicationError: the file is missing or damaged, or lacks an array.
    """
    try:
        yield
    except Exception as error:  # of any kind, as numpy reads the head of a file as Python
        raise ReplicationError(f"{path} cannot be read ({error}); {advice}.") from None


def load_arrays(folder: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Map arrays of :func:`save_arrays` into memory, read-only.

    Raises:
        ReplicationError: a file is missing or truncated.
    """
    with reading_arrays(folder, "run the prepare stage again"):
        return [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]


def write_summary(folder: Path, corpus: Strict, summary: Mapping[str, object]) -> dict[str, object]:
    """Write ``summary.json``, with the settings of the corpus under ``settings``, into the folder of a prepared task.

    Returns:
        What was written.
    """
    whole = {**summary, _SETTINGS: corpus.model_dump(mode="json")}
    (folder / SUMMARY).write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")
    return whole


def read_summary(folder: Path) -> dict[str, Any]:
    """What :func:`write_summary` wrote.

    Raises:
        ReplicationError: it is missing or damaged.
    """
    return read_record(folder / SUMMARY, "run the prepare stage of its task")


def check_prepared(folder: Path, corpus: Strict) -> None:
    """Refuse a prepared task that was not made with these settings.

    Raises:
        ReplicationError: names every key that differs, with both values, or says that there is nothing to compare.
    """
    known = read_summary(folder).get(_SETTINGS)
    if known is None:
        raise ReplicationError(f"{folder} does not say with which settings it was prepared; run prepare again.")
    before, now = flat(known), flat(corpus.model_dump(mode="json"))
    differences = [
        f"key {key} is {_shown(before, key)} there and {_shown(now, key)} here"
        for key in sorted(before.keys() | now.keys())
        if _shown(before, key) != _shown(now, key)
    ]
    if differences:
        raise ReplicationError(
            f"{folder} was prepared with other settings: {'; '.join(differences)}; run prepare again."
        )


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False) if key in settings else "not set"


def put_in_place(complete: Path, final: Path, aside: Path) -> None:
    """Rename ``complete`` to ``final``; what is there already is renamed to ``aside``, and left to the caller.

    Args:
        complete: the new folder.
        final: its place.
        aside: a name that is free, on the same disk.

    Raises:
        ReplicationError: a folder cannot be renamed; the old one is in its place then.
    """
    replaces = final.exists()
    try:
        if replaces:
            final.rename(aside)
        try:
            complete.rename(final)
        except BaseException:
            if replaces:
                aside.rename(final)
            raise
    except OSError as error:
        raise ReplicationError(
            f"{final} cannot be put in place ({error.strerror}); see that no other program uses it and that you may "
            f"write in {final.parent}, then the same command continues."
        ) from None


@contextmanager
def file_lock(path: Path, held: Callable[[IO[str]], None]) -> Iterator[IO[str]]:
    """Hold a lock; the operating system releases it when the process ends for any reason.

    Where another process holds it, ``held`` is called with the file, and then that process is waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held(file)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        yield file
