"""Variants that measure something without training a model on the task's data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from shared.tasks.routed import Route
from shared.tasks.sections import StudyConfig
from shared.tasks.settings import RunConfig
from shared.training.checkpoints import TrainingRecord
from shared.training.progress import Report


class Study(ABC):
    """Judges as :class:`shared.tasks.protocol.Runner` says, and trains nothing.

    A subclass may narrow ``config`` to the kind of task that it is for.

    Attributes:
        section: checks the ``model`` section; a subclass may add to it.
    """

    section: ClassVar[type[StudyConfig]] = StudyConfig

    @abstractmethod
    def evaluate(self, config: Any, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Measure; returns metrics."""

    def train(
        self, config: RunConfig, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Nothing is trained: the checkpoints are empty."""
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        for name in ("best", "last"):
            torch.save({}, folder / "checkpoints" / f"{name}.ckpt")
        record = TrainingRecord(
            updates=0, precision="none", stopped_because="there is nothing to train", wall_seconds=0.0,
            processor_seconds=0.0, tokens_per_second=0.0, best_valid_loss=0.0, best_update=0,
        )  # fmt: skip
        return record, 0

    def cannot_run(self, config: RunConfig) -> str | None:
        """Studies run everywhere."""
        return None

    def cost(self, config: RunConfig, prepared: Path | None) -> None:
        """None: no network is trained."""
        return

    def descriptions(self, config: RunConfig, prepared: Path) -> Mapping[str, Any]:
        """Nothing: a study scores no text."""
        return {}


def seed_of(trained: Sequence[Path]) -> int:
    """The seed of a run, for studies that draw something, from its folder ``seed<k>``."""
    return int(trained[0].name.removeprefix("seed"))


def study_route(studies: Mapping[str, Study]) -> Route[Any]:
    """The route of variants ``model: {study: <name>}``, with the studies by name; see :mod:`shared.tasks.routed`."""
    return lambda config: (studies[config.model["study"]], config)
