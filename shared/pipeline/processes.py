"""A stage runs once at a time and ends with the DVC that started it: unseen, it would spoil or block the next start."""

from __future__ import annotations

import functools
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from shared.data.storage import file_lock
from shared.errors import ReplicationError
from shared.training.processes import Group

LOCKS = Path("runs/.locks")
EVERY = 0.5
"""Seconds between two looks at the parent."""

Stage = Callable[..., None]


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
                raise ReplicationError(
                    f"the {results} of {name} are made by one process, not by {group.size}; start it without torchrun."
                )
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
        if not waits:
            raise ReplicationError(f"the {what} are being made by {_holder(file)}; wait for its end, or end it first.")

    with file_lock(LOCKS / what.replace(" ", "-").replace("/", "-"), refuse) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        yield


def _holder(file: IO[str]) -> str:
    """Who holds the lock. Who has just got it writes its number a moment later."""
    for _ in range(20):
        file.seek(0)
        if said := file.read():
            return said
        time.sleep(0.05)
    return "another process"


def end_with_dvc() -> None:
    """Make this process end, as after SIGTERM, when DVC does; nothing happens where DVC has not started it."""
    if "DVC_STAGE" in os.environ:
        parent = os.getppid()
        threading.Thread(target=_watch, args=(parent, _starter_of_shell(parent)), daemon=True).start()


def _watch(parent: int, starter: int | None) -> None:
    while os.getppid() == parent and (starter is None or _parent_of(parent) == starter):
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


def _starter_of_shell(pid: int) -> int | None:
    """The parent of ``sh -c command``, which DVC starts and some shells replace by the command; None if it is none."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:  # there is no /proc, or the process has ended
        return None
    return _parent_of(pid) if words[-2:-1] == [b"-c"] else None


def _parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
