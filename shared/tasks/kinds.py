"""The kinds of task: the one place where a kind is registered.

A kind is a package with the modules ``settings`` (``RUN``, the settings of a variant), ``measures``, which registers
the kind's measures, ``report`` (``REPORT``, what reports of the kind show), ``module`` and ``task``. They are imported
when they are first asked for: nothing waits for the other kinds, and the settings of a kind need no torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.config import near
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.reports.kind import KindReport
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
    """The class that checks the settings of a variant of this kind.

    Raises:
        ReplicationError: there is no such kind.
    """
    settings: type[RunConfig] = _module(kind, "settings").RUN
    return settings


def kind_report(kind: str) -> KindReport:
    """What reports of papers of this kind show beside what all reports show.

    Raises:
        ReplicationError: there is no such kind.
    """
    report: KindReport = _module(kind, "report").REPORT
    return report


def load_measures() -> None:
    """Register the measures of all kinds; without torch, Lightning and matplotlib."""
    for kind in KINDS:
        _module(kind, "measures")


def _module(kind: str, name: str) -> Any:
    if kind not in KINDS:
        raise ReplicationError(f"there is no kind of task '{kind}'{near(kind, KINDS)}.")
    return importlib.import_module(f"{KINDS[kind]}.{name}")
