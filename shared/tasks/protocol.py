"""What a paper's ``replication.py`` gives the pipeline, under the name ``REPLICATION``."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig
    from shared.training.checkpoints import TrainingRecord
    from shared.training.progress import Report

SettingsT = TypeVar("SettingsT", bound="RunConfig", contravariant=True)


class Runner(Protocol[SettingsT]):
    """What trains and judges variants of one kind, each by its settings."""

    def cannot_run(self, config: SettingsT) -> str | None:
        """The reason why this machine cannot run the variant, such as a missing package; None if it can."""
        ...

    def cost(self, config: SettingsT, prepared: Path | None) -> tuple[int, float] | None:
        """The model's parameters, and processor seconds of an update here; None if no network is trained.

        The updates are made on the prepared task, or where it is None on random data of the greatest length.
        """
        ...

    def train(
        self, config: SettingsT, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train one seed in ``folder``; returns what training measured and the number of parameters."""
        ...

    def evaluate(self, config: SettingsT, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Judge one trained seed, or several together as an ensemble, by their folders.

        Writes ``examples.jsonl.gz`` and ``attention.npz`` into ``out``; returns metrics.
        """
        ...

    def descriptions(self, config: SettingsT, prepared: Path) -> Mapping[str, Any]:
        """``signatures`` of the metrics and what one ``token`` is, for the reader of ``metrics.json``."""
        ...


class Replication(Runner[SettingsT], Protocol[SettingsT]):
    """The paper-specific half of every stage.

    :class:`shared.tasks.translation.task.Translation`, :class:`shared.tasks.classification.task.Classification`,
    :class:`shared.tasks.captioning.task.Captioning`, :class:`shared.tasks.language.task.LanguageModelling` and
    :class:`shared.tasks.sequences.task.Sequences` are five of these. :class:`shared.tasks.routed.Routed` is one some of
    whose variants are not networks of the paper.
    """

    @property
    def kind(self) -> str:
        """The kind of its tasks, one of :data:`shared.tasks.kinds.KINDS`."""
        ...

    def features(self, corpus: Any, dataset: Path, out: Path) -> Mapping[str, object]:
        """Encode the pictures of a fetched data set, for tasks with pictures; returns a summary."""
        ...

    def check(self, config: SettingsT) -> None:
        """Refuse a ``model`` section that is wrong, before any long work."""
        ...

    def prepare(self, corpus: Any, dataset: Path, out: Path) -> Mapping[str, object]:
        """Turn a fetched data set into what training reads; returns a summary. ``corpus`` is that of the kind."""
        ...


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


def load_replication(paper: str) -> Replication[Any]:
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
    replication: Replication[Any] | None = getattr(module, "REPLICATION", None)
    if replication is None:
        raise ReplicationError(f"{name.replace('.', '/')}.py does not define REPLICATION.")
    return replication


def papers() -> list[str]:
    """All papers of the project."""
    return sorted(file.parent.name for file in Path("replications").glob("*/variants.yaml"))
