"""A paper as the stages see it: its networks, built, trained, loaded and judged; and its variants that are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import nn

from shared.tasks.kinds import large_imports, load_replication
from shared.tasks.settings import BorrowedConfig, PaperSettings, RunConfig, RunT, check_model, find_route
from shared.training.checkpoints import TrainingRecord, load_weights
from shared.training.config import BatchConfig
from shared.training.progress import Report

if TYPE_CHECKING:
    from shared.training.module import TrainingModule

TIMED = 8
"""Number of updates whose mean time estimates the cost of one; they include batches of short and of long texts."""


class Data(Protocol):
    """An opened prepared task."""

    @property
    def sizes(self) -> tuple[int, Any]:
        """The arguments of ``build_model`` that depend on the data."""
        ...

    def batches(self, training: Any, seed: int) -> Callable[[int], Iterator[Any]]:
        """From a batch's number to that batch of training and all that follow it."""
        ...

    def valid(self, training: Any) -> Sequence[Any]:
        """The batches of the validation split."""
        ...


class Task(Protocol):
    """What the module ``task`` of each kind has: ``shared.tasks.<kind>.task``.

    Beside these functions it has ``prepare(corpus, dataset, out)``, which turns a fetched data set into what training
    reads and returns a summary, and for tasks with pictures ``features(corpus, dataset, out)``, which encodes them.
    """

    def open_data(self, config: Any, prepared: Path) -> Any:
        """The :class:`Data` that the prepare stage left in a folder."""
        ...

    def random_batch(self, config: Any) -> tuple[Any, tuple[int, Any]]:
        """A batch of random symbols as large as in training; and the arguments that ``Data.sizes`` gives."""
        ...

    def module(self, model: nn.Module, config: Any, data: Any) -> TrainingModule:
        """The Lightning module; ``data`` is None for a module that is not validated."""
        ...

    def evaluate(
        self, replication: Replication, config: Any, data: Any, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Judge one trained seed, or several together as an ensemble, by their folders."""
        ...

    def describe(self, config: Any) -> Mapping[str, Any]:
        """``signatures`` of the metrics and what one ``token`` is, for the reader of ``metrics.json``."""
        ...


@dataclass(frozen=True)
class Replication:
    """What a paper's ``replication.py`` gives the stages, under the name ``REPLICATION``.

    Attributes:
        task: what all tasks of the paper's kind have in common: the module ``shared.tasks.<kind>.task``.
        settings: the paper's module ``settings``.
        build_model: returns an untrained model from a checked ``model`` section and the two :attr:`Data.sizes`; the
            kind's module ``task`` says what the model must be able to do.
        runners: key of a ``model`` section to the :class:`Study` of such variants, or to several by name.
    """

    task: Task
    settings: PaperSettings
    build_model: Callable[[Any, int, Any], nn.Module]
    runners: Mapping[str, Study | Mapping[str, Study]] = field(default_factory=dict)

    def check(self, config: RunConfig) -> None:
        """Refuse a ``model`` section that is wrong, before any long work."""
        check_model(self.settings, config)

    def cannot_run(self, config: RunConfig) -> str | None:
        """The reason why this machine cannot run the variant, such as a missing package; networks run everywhere."""
        return None

    def open(self, config: RunConfig, prepared: Path) -> Any:
        """The prepared task."""
        return self.task.open_data(config, prepared)

    def model(self, config: RunConfig, sizes: tuple[int, Any]) -> nn.Module:
        """The untrained model of a run."""
        return self.build_model(config.checked_model(self.settings.MODEL), *sizes)

    def cost(self, config: RunConfig, prepared: Path) -> tuple[int, float] | None:
        """The model's parameters, and processor seconds of an update on the prepared task here."""
        data = self.open(config, prepared)
        model, batches = self.model(config, data.sizes), data.batches(config.training, 0)(0)
        seconds = _seconds_of_updates(self.task.module(model, config, data), list(islice(batches, TIMED + 1)))
        return _parameters(model), config.training.accumulate * seconds

    def train(
        self, config: RunConfig, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train one seed in ``folder``: it decides the initial weights, the order of the batches and the dropout masks.

        Returns:
            What training measured, and the number of parameters.
        """
        with large_imports():  # Lightning takes seconds to import; only training needs it
            from shared.training.run import train_run

        data = self.open(config, prepared)
        torch.manual_seed(seed)
        model = self.model(config, data.sizes)
        record = train_run(
            self.task.module(model, config, data), config.training,
            batches=data.batches(config.training, seed), valid=data.valid(config.training), folder=folder,
            seed=seed, fingerprint=fingerprint, label=label, progress=progress,
        )  # fmt: skip
        return record, _parameters(model)

    def trained_models(self, config: RunConfig, data: Data, trained: Sequence[Path]) -> list[nn.Module]:
        """The models with the weights of the checkpoint that is judged, in evaluation mode."""
        models = [self.model(config, data.sizes).eval() for _ in trained]
        for model, folder in zip(models, trained, strict=True):
            load_weights(model, folder / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt")
        return models

    def evaluate(self, config: RunConfig, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Judge one trained seed, or several together as an ensemble, by their folders.

        Writes ``examples.jsonl.gz`` and, where there is attention to show, ``attention.npz`` into ``out``; returns
        metrics.
        """
        return self.task.evaluate(self, config, self.open(config, prepared), trained, out)

    def descriptions(self, config: RunConfig) -> Mapping[str, Any]:
        """``signatures`` of the metrics and what one ``token`` is, for the reader of ``metrics.json``."""
        return self.task.describe(config)


class Study:
    """Variants that train no network, but measure or count something; a subclass defines :meth:`evaluate`.

    It may narrow ``config`` to the kind of task that it is for.
    """

    def cannot_run(self, config: Any) -> str | None:
        """Why this machine cannot run the variant, if so."""
        return None

    def cost(self, config: Any, prepared: Path) -> None:
        """None: no network is trained."""
        return

    def train(
        self, config: Any, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
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

    def evaluate(self, config: Any, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Measure; returns metrics."""
        raise NotImplementedError

    def descriptions(self, config: Any) -> Mapping[str, Any]:
        """Nothing: a study scores no text."""
        return {}


def runner_of(replication: Replication, config: RunT) -> tuple[Replication | Study, RunT]:
    """What trains and judges a variant, and the settings that it takes.

    It is the replication itself, another paper's whose network is borrowed, or a study.

    Raises:
        ReplicationError: the ``model`` section fits none of them.
    """
    settings = replication.settings
    section, config = find_route(config, settings.MODEL, settings.ROUTES)
    if section is None:
        return replication, config
    key, kind = section
    if kind is BorrowedConfig:
        borrowed = config.checked_model(BorrowedConfig)
        borrowed.lender(config)
        return load_replication(borrowed.paper), config.with_model(borrowed.settings)
    runner = replication.runners[key]
    return (runner[config.model[key]] if isinstance(runner, Mapping) else runner), config


def seed_of(trained: Sequence[Path]) -> int:
    """The seed of a run, for studies that draw something, from its folder ``seed<k>``."""
    return int(trained[0].name.removeprefix("seed"))


def ready(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, on a GPU where there is one."""
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def full_batch_size(batch: BatchConfig, length: int) -> int:
    """How many examples of ``length`` symbols a full batch has."""
    return batch.sentences or max(1, (batch.tokens or length) // length)


def _parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _seconds_of_updates(module: TrainingModule, batches: Sequence[Any]) -> float:
    """The mean processor time of real updates, all but the first of which are timed."""
    optimizer, seconds = module.configure_optimizers(), []
    for number, batch in enumerate(batches):
        begin = time.process_time()
        optimizer.zero_grad()
        loss: Any = module.training_step(batch, number)
        loss.backward()
        module.make_update(optimizer)
        seconds.append(time.process_time() - begin)
    return float(np.mean(seconds[1:]))
