"""A stage runs once at a time: two processes that write the same files would spoil them for each other."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from shared.errors import ReplicationError
from shared.training.processes import Group

LOCKS = Path("runs/.locks")
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
"""Errors of file systems without locks, where users must make sure that a stage runs once at a time."""

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
            with _locked(f"{results} of {name} at {scale} scale", waits) if group.first else nullcontext():
                stage(name, scale, **options)

        return once

    return decorate


@contextmanager
def _locked(what: str, waits: bool) -> Iterator[None]:
    """Hold a lock; the operating system releases it when the process ends for any reason."""
    LOCKS.mkdir(parents=True, exist_ok=True)
    with (LOCKS / what.replace(" ", "-").replace("/", "-")).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waits:
                raise ReplicationError(
                    f"the {what} are being made by {_holder(file)}; wait until it has ended, or end it first."
                ) from None
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
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
