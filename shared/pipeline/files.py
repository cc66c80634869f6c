"""Where the pipeline keeps what, and how it stays whole.

A reader sees the old file or the whole new one, and a stage runs once at a time: unseen, it would spoil the next start.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from shared.config import near
from shared.data.storage import file_lock, put_in_place
from shared.errors import ReplicationError
from shared.tasks.kinds import papers
from shared.training.processes import Group

REPLICATIONS = Path("replications")
PIPELINE = Path("shared/pipeline/templates/pipeline.yaml")
"""The one text of the pipeline."""
LOCKS = Path("runs/.locks")
Stage = Callable[..., None]


def run_folder(paper: str, scale: str) -> Path:
    """``runs/<scale>/<paper>``."""
    return Path("runs") / scale / paper


def paper_folder(paper: str) -> Path:
    """``replications/<paper>``.

    Raises:
        ReplicationError: there is no such paper; names the nearest one.
    """
    folder = REPLICATIONS / paper
    if not paper or not folder.is_dir():
        raise ReplicationError(f"there is no paper '{paper}'{near(paper, papers())}.")
    return folder


def link_pipeline(folder: Path) -> None:
    """Make the ``dvc.yaml`` of ``replications/<paper>/<scale>`` a link to the pipeline that all share."""
    (folder / "dvc.yaml").symlink_to(Path("../../..") / PIPELINE)


def write_json(path: Path, value: Any) -> None:
    """Write ``value``; a reader sees the old file or the whole new one."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write ``text``; a reader sees the old file or the whole new one. A file that has it already is not touched."""
    if path.is_file() and path.read_bytes() == text.encode():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


@contextmanager
def made_anew(final: Path) -> Iterator[Path]:
    """An empty folder that takes the place of the final one as soon as it is whole; an error leaves the final one."""
    partial, old = (final.with_name(f"{final.name}.{end}") for end in ("partial", "old.partial"))
    if old.exists() and not final.exists():
        old.rename(final)  # the process that put it aside was killed before it had the new one in place
    for leftover in (partial, old):
        if leftover.exists():
            shutil.rmtree(leftover)
    partial.mkdir(parents=True)
    try:
        yield partial
        put_in_place(partial, final, old)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new one is in place; if something stays, the next run says so


def alone(results: str, *, waits: bool = False, shared: bool = False) -> Callable[[Stage], Stage]:
    """Decorate a stage, a function of name, scale and perhaps more, which then runs once at a time for a name.

    Args:
        results: what the stage writes; stages that write into one place have the same.
        waits: for the other process, instead of a refusal.
        shared: whether torchrun's processes may do it together; the first of them keeps others out.

    Raises:
        ReplicationError: (the decorated stage) another process makes the same results.
    """

    def decorate(stage: Stage) -> Stage:
        @functools.wraps(stage)
        def once(name: str, scale: str, **options: Any) -> None:
            group = Group.here()
            if group.size > 1 and not shared:
                raise ReplicationError(f"one process makes the {results} of {name}; start it without torchrun.")
            with locked(f"{results} of {name} at {scale} scale", waits) if group.first else nullcontext():
                stage(name, scale, **options)

        return once

    return decorate


@contextmanager
def locked(what: str, waits: bool = False) -> Iterator[None]:
    """Hold a lock; the operating system releases it when the process ends for any reason.

    Raises:
        ReplicationError: another process holds it, and this one does not wait.
    """

    def refuse(file: IO[str]) -> None:
        file.seek(0)
        if not waits:
            holder = file.read() or "another process"  # which has the lock since a moment ago
            raise ReplicationError(f"the {what} are being made by {holder}; wait for its end, or end it first.")

    with file_lock(LOCKS / what.replace(" ", "-").replace("/", "-"), refuse) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        yield
