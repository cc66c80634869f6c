"""The one error type that a user is meant to see, and the sentences for errors of the system."""

from __future__ import annotations

import errno
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
INCOMPLETE = ("requested and", "PytorchStreamWriter", "inline_container")
"""In errors without a number: of NumPy, and of torch, when they could not write all of an array."""
WANTED = {errno.EISDIR: "a file", errno.ENOTDIR: "a folder", errno.EEXIST: "a folder", errno.ELOOP: "no such link"}
"""Error of the system to what it has looked for."""


class ReplicationError(Exception):
    """Something the user can act on: one clear sentence, and what to do about it.

    Stage programs print it as ``error: …`` without a traceback and exit with status 2.
    """


def system_sentence(error: BaseException) -> str | None:
    """One sentence with the file and what to do, where a disk or what else lies on it is at fault; else None."""
    number = error.errno if isinstance(error, OSError) else None
    file = getattr(error, "filename", None)
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if number in WANTED and file:
        there = next((each for each in (Path(file), *Path(file).parents) if each.is_symlink() or each.exists()), file)
        return (
            f"{there} is in the way ({reason}), where {WANTED[number]} should be; rename or remove it, then the same "
            "command continues."
        )
    if number in NOT_WRITABLE:
        what, right = ("written", "write") if number == errno.EROFS else ("opened", "read and write")
        return (
            f"{file or 'a file'} cannot be {what} ({reason}); give this user the right to {right} there, then the same "
            "command continues."
        )
    unnumbered = isinstance(error, OSError | RuntimeError) and number is None
    if number in FULL or (unnumbered and any(part in str(error) for part in INCOMPLETE)):
        return (
            f"{file or 'a result'} cannot be written, as the disk or a quota is full ({reason}); make room, then the "
            "same command continues."
        )
    return None
