"""What users are told of a disk that is full or read-only."""

from __future__ import annotations

import errno

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
INCOMPLETE = ("requested and", "PytorchStreamWriter", "inline_container")
"""In errors without a number: of NumPy, and of torch, when they could not write all of an array."""


def disk_sentence(error: BaseException) -> str | None:
    """One sentence with the file and what to do, where the disk is at fault; None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    file = getattr(error, "filename", None)
    if number in NOT_WRITABLE:
        what, right = ("written", "write") if number == errno.EROFS else ("opened", "read and write")
        return (
            f"{file or 'a file'} cannot be {what} ({_reason(error)}); give this user the right to {right} there, then "
            "the same command continues."
        )
    unnumbered = isinstance(error, OSError | RuntimeError) and number is None
    if number in FULL or (unnumbered and any(part in str(error) for part in INCOMPLETE)):
        return (
            f"{file or 'a result'} cannot be written, as the disk or a quota is full ({_reason(error)}); make room, "
            "then the same command continues."
        )
    return None


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error).partition("\n")[0]
