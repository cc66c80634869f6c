"""The kinds of task there are. A kind is imported when it is first asked for, so that nothing waits for the others."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.reports.kind import KindReport

KINDS: Mapping[str, str] = {
    "translation": "shared.tasks.translation.task.Translation",
    "classification": "shared.tasks.classification.task.Classification",
    "captioning": "shared.tasks.captioning.task.Captioning",
    "language": "shared.tasks.language.task.LanguageModelling",
    "sequences": "shared.tasks.sequences.task.Sequences",
}
"""Kind to the dotted path of its Task: the one registration of a kind. Beside ``task`` lie ``settings``, ``measures``,
which registers the kind's measures, and ``report``, whose ``REPORT`` is what reports of the kind show."""


def load_measures() -> None:
    """Register the measures of all kinds; without torch, Lightning and matplotlib."""
    for kind in KINDS:
        _module(kind, "measures")


def kind_report(kind: str) -> KindReport:
    """What reports of papers of this kind show beside what all reports show.

    Raises:
        ReplicationError: there is no such kind.
    """
    report: KindReport = _module(kind, "report").REPORT
    return report


def _module(kind: str, name: str) -> Any:
    if kind not in KINDS:
        raise ReplicationError(f"there is no kind of task '{kind}'; choose {', '.join(KINDS)}.")
    package = KINDS[kind].rpartition(".")[0].rpartition(".")[0]
    return importlib.import_module(f"{package}.{name}")
