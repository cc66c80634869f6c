"""Ends a stage when the DVC that started it has ended; otherwise it would run on unseen and block the next start."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

EVERY = 0.5
"""Seconds between two looks at the parent."""


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
