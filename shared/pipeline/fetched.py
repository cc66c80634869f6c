"""Fetched data, with what DVC does not watch compared again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.data.fetch import Manifest


def obtain(dataset: str) -> Manifest:
    """Fetch a data set, at once if it was fetched before.

    Raises:
        ReplicationError: it cannot be fetched, its card leads elsewhere, or a raw file is not what its reader expects.
    """
    from shared.data.fetch import fetch

    return fetch(dataset)


def fetched(dataset: str) -> Path:
    """The folder of a data set; a queued experiment's copy of the project has no data yet, and fetches it.

    Raises:
        ReplicationError: it cannot be fetched, or a file has changed since, which DVC does not watch.
    """
    from shared.data.fetch import verify

    obtain(dataset)
    verify(dataset)
    return Path("data") / dataset
