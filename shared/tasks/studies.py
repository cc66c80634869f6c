"""Variants that measure something without training a model on the task's data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from shared.config import Strict, build, near
from shared.errors import ReplicationError
from shared.tasks.protocol import Runner
from shared.tasks.routed import Route
from shared.tasks.settings import RunConfig
from shared.training.checkpoints import TrainingRecord
from shared.training.progress import Report


class StudyConfig(Strict):
    """The ``model`` section of a variant that is a study."""

    study: str


class Study(ABC):
    """Judges as :class:`shared.tasks.protocol.Runner` says, and trains nothing.

    A subclass may narrow ``config`` to the kind of task that it is for.

    Attributes:
        section: checks the ``model`` section; a subclass may add to it.
    """

    section: ClassVar[type[StudyConfig]] = StudyConfig

    @abstractmethod
    def check(self, config: Any) -> None:
        """Refuse settings that the study cannot be made with."""

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


def study_route(studies: Mapping[str, Study], network: type[Strict] | None = None) -> Route[Any]:
    """The route of variants ``model: {study: <name>}``; see :mod:`shared.tasks.routed`.

    Args:
        studies: by name. A variant that names another is refused.
        network: checks the ``model`` sections of the task's networks, over which the study's lies where the route is
            one of the whole section. A study that builds no such network sees its own settings alone, which may have
            the same names.
    """

    def route(config: RunConfig) -> tuple[Runner[RunConfig], RunConfig]:
        where = f"the model section of task '{config.task}'"
        name = build(StudyConfig, {"study": config.model["study"]}, where=where).study
        if name not in studies:
            raise ReplicationError(f"{where}: there is no study '{name}'{near(name, studies)}.")
        section = studies[name].section
        if network is not None and section.model_config.get("extra") != "allow":
            foreign = network.model_fields.keys() - section.model_fields
            own = {key: value for key, value in config.model.items() if key not in foreign}
            config = config.model_copy(update={"model": own})
        config.checked_model(section)
        return studies[name], config

    return route
