"""Putting a new folder into the place of an old one, which is kept until the new one is there."""

from __future__ import annotations

from pathlib import Path

from shared.errors import ReplicationError


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
