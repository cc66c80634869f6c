"""The kinds of task, the one place where a kind is registered; and the papers, by name.

A kind is a package with the modules ``settings`` (``RUN``, the settings of a variant), ``measures``, which registers
the kind's measures, ``report`` (``REPORT``, what reports of the kind show), ``module`` and ``task``. They are imported
when they are first asked for: nothing waits for the other kinds, and the settings of a kind need no torch.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.config import check_name
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.reports.exhibits import KindReport
    from shared.tasks.replication import Replication
    from shared.tasks.settings import RunConfig

KINDS: Mapping[str, str] = {
    "translation": "shared.tasks.translation",
    "classification": "shared.tasks.classification",
    "captioning": "shared.tasks.captioning",
    "language": "shared.tasks.language",
    "sequences": "shared.tasks.sequences",
    "sets": "shared.tasks.sets",
}
"""Kind of task to its package."""


def settings_of(kind: str) -> type[RunConfig]:
    """The class that checks the settings of a variant of this kind.

    Raises:
        ReplicationError: there is no such kind.
    """
    settings: type[RunConfig] = _module(kind, "settings").RUN
    return settings


def task_of(kind: str) -> Any:
    """The module ``task`` of this kind, whose functions :class:`shared.tasks.replication.Replication` lists."""
    with large_imports():
        return _module(kind, "task")


def kind_report(kind: str) -> KindReport:
    """What reports of papers of this kind show beside what all reports show."""
    report: KindReport = _module(kind, "report").REPORT
    return report


def load_measures() -> None:
    """Register the measures of all kinds; without torch, Lightning and matplotlib."""
    for kind in KINDS:
        _module(kind, "measures")


def _module(kind: str, name: str) -> Any:
    check_name(kind, KINDS, "there is no kind of task")
    return importlib.import_module(f"{KINDS[kind]}.{name}")


def papers() -> list[str]:
    """All papers of the project."""
    return sorted(file.parent.name for file in Path("replications").glob("*/variants.yaml"))


def load_replication(paper: str) -> Replication:
    """Import ``replications.<paper>.replication``.

    Raises:
        ReplicationError: there is no such module, or it has no ``REPLICATION``.
    """
    name = f"replications.{paper}.replication"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise ReplicationError(
            f"there is no {name.replace('.', '/')}.py; see 'Add a paper' in CONTRIBUTING.md."
        ) from None
    replication: Replication | None = getattr(module, "REPLICATION", None)
    if replication is None:
        raise ReplicationError(f"{name.replace('.', '/')}.py does not define REPLICATION.")
    return replication


@contextmanager
def large_imports() -> Iterator[None]:
    """Turn garbage collection off for imports of torch or Lightning: it frees nothing and takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
