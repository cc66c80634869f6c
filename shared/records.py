"""Records that stages leave as JSON, read back; what is wrong with one is said in one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

from shared.errors import ReplicationError

KindT = TypeVar("KindT", dict[str, Any], list[Any])
Parts = Mapping[str, type | UnionType]
"""Key to the type that its value must have; ``dict | None`` is that of a key that may be missing."""


def read_json(path: Path, again: str, kind: type[KindT]) -> KindT:
    """The content of a file that a stage has written.

    Args:
        path: of the file.
        again: what makes it anew, such as ``run its train stage again``.
        kind: whether it is an object or a list.

    Raises:
        ReplicationError: it is missing, damaged or of another kind; says what makes it anew.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; {again}.") from None
    except OSError as error:
        raise ReplicationError(f"{path} cannot be read ({error.strerror}); {again}.") from None
    except (ValueError, RecursionError) as error:
        raise ReplicationError(f"{path} is damaged ({error}); {again}.") from None
    if not isinstance(found, kind):
        wanted = "object" if kind is dict else "list"
        raise ReplicationError(f"{path} is damaged (it holds no JSON {wanted}); {again}.")
    return found


def read_record(path: Path, again: str, parts: Parts | None = None) -> dict[str, Any]:
    """A record that a stage has written, with the keys that its reader needs.

    Args:
        path: of the file.
        again: what makes it anew.
        parts: the keys.

    Raises:
        ReplicationError: it is missing, damaged or lacks a key, or a value is of another type.
    """
    found = read_json(path, again, dict)
    for key, kind in (parts or {}).items():
        if not isinstance(found.get(key), kind):
            wrong = f"has a '{key}' of another form" if key in found else f"lacks the key '{key}'"
            raise ReplicationError(f"{path} {wrong}; {again}.")
    return found


def read_if_whole(path: Path, parts: Parts | None = None) -> dict[str, Any] | None:
    """As :func:`read_record`; None where the record is missing or damaged, for readers that then make it anew."""
    try:
        return read_record(path, "make it anew", parts)
    except ReplicationError:
        return None
