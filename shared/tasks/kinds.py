"""The kinds of task: the one place where a kind is registered.

A kind is a package with the modules ``settings`` (``RUN``, the settings of a variant), ``measures`` and ``task``.
They are imported by name, when they are needed: to know a kind's settings takes no torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

KINDS: Mapping[str, str] = {
    "translation": "shared.tasks.translation",
    "classification": "shared.tasks.classification",
    "captioning": "shared.tasks.captioning",
    "language": "shared.tasks.language",
    "sequences": "shared.tasks.sequences",
}
"""Kind of task to its package."""


def settings_of(kind: str) -> type[RunConfig]:
    """The class that checks the settings of a variant of this kind."""
    settings: type[RunConfig] = importlib.import_module(f"{KINDS[kind]}.settings").RUN
    return settings
