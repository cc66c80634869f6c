"""What the report of a scale leaves for the page of its paper: blocks as data, in ``page.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError
from shared.reports import document, explorer
from shared.reports.document import Block

NAME = "page.json"


@dataclass(frozen=True)
class ScaleCard:
    """What a scale says of a claim.

    Attributes:
        intro: what the paper says.
        evidence: what was found, and what a reader must know beside it.
        exhibits: figures and tables of the claim.
        decided: how; nothing where nothing was tested.
    """

    intro: Sequence[Block]
    evidence: Sequence[Block]
    exhibits: Sequence[Block] = ()
    decided: Sequence[Block] = ()


@dataclass(frozen=True)
class ScalePart:
    """What a scale has of the page of a paper.

    Attributes:
        standing: whether its runs are of today, and when its plan was frozen.
        cards: claim to what is said of it.
        rest: the sections that follow, each with its heading of level 2.
    """

    standing: Sequence[Block]
    cards: Mapping[str, ScaleCard]
    rest: Sequence[Block] = field(default_factory=list)


KINDS = {
    name: kind
    for module in (document, explorer)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind)
} | {kind.__name__: kind for kind in (ScaleCard, ScalePart)}
KIND, PATH = "@", "@path"
"""Keys of objects that stand for a block, and for a path."""


def write_part(part: ScalePart, folder: Path) -> None:
    """Write ``page.json``; paths in it are relative to the folder."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return {PATH: Path(os.path.relpath(value, folder)).as_posix()}
        if is_dataclass(value):
            return {KIND: type(value).__name__} | {
                each.name: plain(getattr(value, each.name)) for each in fields(value)
            }
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, (set, frozenset)):
            return sorted(value)
        return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

    text = json.dumps(plain(part), ensure_ascii=False, indent=0)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")


def read_part(folder: Path) -> ScalePart:
    """Read what :func:`write_part` wrote.

    Raises:
        ReplicationError: it cannot be read.
    """

    def whole(value: dict[str, Any]) -> Any:  # the innermost objects come first
        if PATH in value:
            return folder / value[PATH]
        return KINDS[value.pop(KIND)](**value) if KIND in value else value

    try:
        part: ScalePart = json.loads((folder / NAME).read_text(encoding="utf-8"), object_hook=whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReplicationError(f"{folder / NAME} cannot be read ({error}); run its report stage again.") from None
    return part
