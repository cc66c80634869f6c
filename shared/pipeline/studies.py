"""Variants that measure something without training a model on the task's data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.config import Strict
from shared.errors import ReplicationError
from shared.pipeline.config import near
from shared.pipeline.replication import Runner
from shared.pipeline.routed import Route
from shared.pipeline.run_config import RunConfig
from shared.training.checkpoints import TrainingRecord


class StudyConfig(Strict):
    """The ``model`` section of a variant that is a study."""

    study: str


class Study(ABC):
    """Trains and judges as :class:`shared.pipeline.replication.Runner` says, as far as there is anything to train."""

    @abstractmethod
    def check(self, config: RunConfig) -> None:
        """Refuse settings that the study cannot be made with."""

    @abstractmethod
    def train(
        self, config: RunConfig, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str
    ) -> tuple[TrainingRecord, int]:
        """Leave in ``folder/checkpoints`` what the study wants to keep."""

    @abstractmethod
    def evaluate(
        self, config: RunConfig, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Measure; returns metrics."""

    def cannot_run(self, config: RunConfig) -> str | None:
        """Studies run everywhere."""
        return None

    def rehearse(self, config: RunConfig) -> tuple[int, float]:
        """Refuse.

        Raises:
            ReplicationError: always.
        """
        raise ReplicationError("a study trains no model, so there is nothing to rehearse; run its stages at once.")

    def descriptions(self, config: RunConfig, prepared: Path) -> Mapping[str, Any]:
        """Nothing: a study scores no text."""
        return {}


def study_route(studies: Mapping[str, Runner]) -> Route:
    """The route of variants ``model: {study: <name>}``; see :mod:`shared.pipeline.routed`.

    Args:
        studies: by name. A variant that names another is refused.
    """

    def route(config: RunConfig) -> tuple[Runner, RunConfig]:
        name = config.checked_model(StudyConfig).study
        if name not in studies:
            raise ReplicationError(
                f"the model section of task '{config.task}': there is no study '{name}'{near(name, studies)}."
            )
        return studies[name], config

    return route
