"""A paper as the stages see it: its networks, built, trained, loaded and judged; and its variants that are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from shared.config import Strict, build
from shared.tasks.kinds import large_imports, load_replication, open_data, part_of
from shared.tasks.settings import BorrowedConfig, RunConfig, find_route
from shared.training.checkpoints import TrainingRecord, load_weights

TIMED = 8
"""Number of updates whose mean time estimates the cost of one; they include batches of short and of long texts."""


@dataclass(frozen=True)
class Replication:
    """What a paper's ``replication.py`` gives the stages, under the name ``REPLICATION``.

    Attributes:
        settings: the paper's module ``settings``, whose ``KIND`` says which kind its tasks are of.
        build_model: returns an untrained model from a checked ``model`` section and the two ``sizes``; the kind's
            ``module.py`` says what the model must be able to do.
        runners: key of a ``model`` section to the :class:`Study` of such variants, or to several by name.
    """

    settings: Any
    build_model: Callable[[Any, int, Any], nn.Module]
    runners: Mapping[str, Study | Mapping[str, Study]] = field(default_factory=dict)

    def part(self, name: str) -> Any:
        """A module of the kind of the paper's tasks, as :mod:`shared.tasks.kinds` lists them."""
        return part_of(self.settings.KIND, name)

    def cannot_run(self, config: RunConfig) -> str | None:
        """The reason why this machine cannot run the variant, such as a missing package; networks run everywhere."""
        return None

    def open(self, config: RunConfig, prepared: Path) -> Any:
        """The prepared task."""
        return open_data(config, prepared)

    def model(self, config: RunConfig, sizes: tuple[int, Any]) -> nn.Module:
        """The untrained model of a run."""
        return self.build_model(config.checked_model(self.settings.ModelConfig), *sizes)

    def cost(self, config: RunConfig, prepared: Path) -> tuple[int, float] | None:
        """The model's parameters, and processor seconds of an update on the prepared task here."""
        data = self.open(config, prepared)
        model = self.model(config, data.sizes)
        module, seconds = self.part("module").module(model, config, data), []
        optimizer = module.configure_optimizers()
        for number, batch in enumerate(islice(data.batches(config.training, 0)(0), TIMED + 1)):
            begin = time.process_time()
            optimizer.zero_grad()
            module.training_step(batch, number).backward()
            module.make_update(optimizer)
            seconds.append(time.process_time() - begin)
        return _parameters(model), config.training.accumulate * float(np.mean(seconds[1:]))  # the first one prepares

    def train(self, config: RunConfig, *, prepared: Path, seed: int, **run: Any) -> tuple[TrainingRecord, int]:
        """Train one seed, which decides the initial weights, the order of the batches and the dropout masks.

        Args:
            config: of the variant.
            prepared: the task.
            seed: of the run.
            **run: ``folder``, ``fingerprint``, ``label`` and ``progress``, see :func:`shared.training.run.train_run`.

        Returns:
            What training measured, and the number of parameters.
        """
        with large_imports():  # Lightning takes seconds to import; only training needs it
            from shared.training.run import train_run

        data = self.open(config, prepared)
        torch.manual_seed(seed)
        model = self.model(config, data.sizes)
        module, batches = self.part("module").module(model, config, data), data.batches(config.training, seed)
        record = train_run(
            module, config.training, batches=batches, valid=data.valid(config.training), seed=seed, **run
        )
        return record, _parameters(model)

    def trained_models(self, config: RunConfig, data: Any, trained: Sequence[Path]) -> list[nn.Module]:
        """The models with the weights of the checkpoint that is judged, as :func:`ready` makes them."""
        models = [self.model(config, data.sizes) for _ in trained]
        for model, folder in zip(models, trained, strict=True):
            load_weights(model, folder / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt")
        return list(map(ready, models))

    def evaluate(self, config: RunConfig, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Judge one trained seed, or several together as an ensemble, by their folders.

        Writes ``examples.jsonl.gz`` and, where there is attention to show, ``attention.npz`` into ``out``; returns
        metrics.
        """
        return self.part("evaluation").evaluate(self, config, self.open(config, prepared), trained, out)

    def descriptions(self, config: RunConfig) -> Mapping[str, Any]:
        """``signatures`` of the metrics, if any, and what one ``token`` is, for the reader of ``metrics.json``."""
        describe = getattr(self.part("evaluation"), "describe", lambda own: {"token": own.corpus.unit})
        return describe(config)


class Study:
    """Variants that train no network, but measure or count something.

    A subclass defines :meth:`measure`, or :meth:`evaluate` if it reads data. It may narrow ``config`` to the kind of
    task that it is for.
    """

    def cannot_run(self, config: Any) -> str | None:
        """Why this machine cannot run the variant, if so."""
        return None

    def cost(self, config: Any, prepared: Path) -> None:
        """None: no network is trained."""
        return

    def train(self, config: Any, *, prepared: Path, folder: Path, label: str, **run: Any) -> tuple[TrainingRecord, int]:
        """Nothing is trained: the checkpoints are empty. The arguments are those of a network's training."""
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        for name in ("best", "last"):
            torch.save({}, folder / "checkpoints" / f"{name}.ckpt")
        return TrainingRecord(), 0

    def evaluate(self, config: Any, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """Measure; returns metrics."""
        return self.measure(config, int(trained[0].name.removeprefix("seed")))

    def measure(self, config: Any, seed: int) -> Mapping[str, float]:
        """Metrics of what is built or drawn; the ``seed`` is that of the run."""
        raise NotImplementedError

    def descriptions(self, config: Any) -> Mapping[str, Any]:
        """Nothing: a study scores no text."""
        return {}


class NetworkStudy(Study):
    """A study of networks that it makes itself.

    Args:
        build_model: of the paper, as :class:`Replication` has it.
        kind: the class of what that takes.
    """

    def __init__(self, build_model: Callable[..., Any], kind: type[Strict]) -> None:
        self._build_model, self._kind = build_model, kind

    def build(self, section: Mapping[str, Any], *sizes: Any) -> Any:
        """The untrained model of a ``model`` section and the two ``sizes``."""
        return self._build_model(build(self._kind, section, where="the network of a study"), *sizes)


def runner_of(replication: Replication, config: Any) -> tuple[Replication | Study, Any]:
    """What trains and judges a variant, and the settings that it takes.

    It is the replication itself, another paper's whose network is borrowed, or a :class:`Study`.

    Raises:
        ReplicationError: the ``model`` section fits none of them.
    """
    section, config = find_route(config, replication.settings)
    if section is None:
        return replication, config
    key, kind = section
    if kind is BorrowedConfig:
        borrowed = config.checked_model(BorrowedConfig)
        borrowed.lender(config)
        return load_replication(borrowed.paper), config.with_model(borrowed.settings)
    runner = replication.runners[key]
    return (runner[config.model[key]] if isinstance(runner, Mapping) else runner), config


def ready(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, on a GPU where there is one."""
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def _parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
