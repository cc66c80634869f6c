"""Unchanged files, for data without texts, such as the weights of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.data.splits import Accompanied
from shared.errors import ReplicationError


def read(raw: Path, languages: Sequence[str], options: Mapping[str, Any]) -> Accompanied:
    """Copy every raw file under its name; there are no splits.

    Raises:
        ReplicationError: the card has languages or reader options.
    """
    if languages or options:
        raise ReplicationError("the reader 'files' has no languages and no options; correct the card.")
    return Accompanied({}, {path.name: path for path in sorted(raw.iterdir())})
