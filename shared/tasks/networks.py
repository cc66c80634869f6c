"""What replications that train neural networks have in common, whatever the networks do."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shared.config import Strict
from shared.data.batching import Indices, endless_batches, epoch_batches
from shared.errors import ReplicationError
from shared.tasks.protocol import Replication, large_imports
from shared.tasks.sections import Suits, anything_suits, check_networks
from shared.tasks.settings import ExampleRunT, RunT
from shared.training.checkpoints import TrainingRecord, load_weights
from shared.training.config import BatchConfig
from shared.training.progress import Report

if TYPE_CHECKING:
    from shared.training.module import TrainingModule
    from shared.training.progress import Report

ModelConfigT = TypeVar("ModelConfigT", bound=Strict)
TIMED = 8
"""Number of updates whose mean time estimates the cost of one; they include batches of short and of long texts."""


class Prepared(Protocol):
    """A prepared task: :class:`shared.tasks.translation.corpus.PreparedText` or what is like it."""

    def split(self, name: str) -> Any:
        """An encoded split."""
        ...


PreparedT = TypeVar("PreparedT", bound=Prepared)


@dataclass(frozen=True)
class Networks(Replication[RunT], Generic[ModelConfigT, RunT, PreparedT]):
    """Builds and trains the networks of a paper's variants.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: returns an untrained model from that section, the size of a vocabulary, and a third argument that
            depends on the kind of task: the size of another vocabulary, the number of classes, the grid of the images,
            whether the model is causal, or None.
        suits: refuses a checked model section that does not suit the rest of its variant.
    """

    model_config: type[ModelConfigT]
    build_model: Callable[[ModelConfigT, int, Any], nn.Module]
    suits: Suits = field(default=anything_suits, kw_only=True)

    def check(self, config: RunT) -> None:
        """Refuse a model section that does not fit ``model_config``."""
        check_networks(config, self.model_config, self.suits)

    def cannot_run(self, config: RunT) -> str | None:
        """Networks run everywhere."""
        return None

    def cost(self, config: RunT, prepared: Path | None) -> tuple[int, float]:
        """Some real updates, all but the first of which are timed: on the task's own batches if it is prepared."""
        if prepared is None:
            batch, sizes = self._full_batch(config)
            batches, model = [batch] * 2, self.build_model(config.checked_model(self.model_config), *sizes)
            module = self._module(model, config, None)
        else:
            text = self._open(config, prepared)
            batches = list(islice(self._batches(config, text, seed=0)(0), TIMED + 1))
            model = self.model(config, text)
            module = self._module(model, config, text)
        optimizer = module.configure_optimizers()["optimizer"]
        seconds = []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*`self.trainer` reference is not registered.*")  # it logs nowhere
            for number, batch in enumerate(batches):
                begin = time.process_time()
                optimizer.zero_grad()
                loss: Any = module.training_step(batch, number)
                loss.backward()
                module.configure_gradient_clipping(optimizer)
                optimizer.step()
                seconds.append(time.process_time() - begin)
        return _parameters(model), config.training.accumulate * float(np.mean(seconds[1:]))

    def features(self, corpus: Any, dataset: Path, out: Path) -> Mapping[str, object]:
        """Refuse, because networks of most kinds read no pictures.

        Raises:
            ReplicationError: always.
        """
        raise ReplicationError(f"tasks of kind '{self.kind}' have no pictures to encode; take 'features' out of it.")

    def model(self, config: RunT, text: PreparedT) -> nn.Module:
        """The untrained model of a run."""
        return self.build_model(config.checked_model(self.model_config), *self._sizes(config, text))

    def train(
        self, config: RunT, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train one seed: it decides the initial weights, the order of the batches and the dropout masks."""
        with large_imports():  # Lightning takes seconds to import; only training needs it
            from shared.training.run import train_run

        text = self._open(config, prepared)
        torch.manual_seed(seed)
        model = self.model(config, text)
        record = train_run(
            self._module(model, config, text), config.training,
            batches=self._batches(config, text, seed), valid=self._validation(config, text), folder=folder,
            seed=seed, fingerprint=fingerprint, label=label, progress=progress,
        )  # fmt: skip
        return record, _parameters(model)

    def _trained(self, config: RunT, text: PreparedT, trained: Sequence[Path]) -> list[nn.Module]:
        """The models with the weights of the checkpoint that is judged, in evaluation mode."""
        models = [self.model(config, text).eval() for _ in trained]
        for model, folder in zip(models, trained, strict=True):
            load_weights(model, folder / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt")
        return models

    @abstractmethod
    def _open(self, config: RunT, prepared: Path) -> PreparedT:
        """What the prepare stage left in a folder."""

    @abstractmethod
    def _sizes(self, config: RunT, text: PreparedT) -> tuple[int, Any]:
        """The arguments of ``build_model`` that depend on the data."""

    @abstractmethod
    def _batches(self, config: RunT, text: PreparedT, seed: int) -> Callable[[int], Iterator[Any]]:
        """From a batch's number to that batch of training and all that follow it."""

    @abstractmethod
    def _validation(self, config: RunT, text: PreparedT) -> Sequence[Any]:
        """The batches of the validation split."""

    @abstractmethod
    def _module(self, model: nn.Module, config: RunT, text: PreparedT | None) -> TrainingModule:
        """The Lightning module; ``text`` is None for a module that is not validated."""

    @abstractmethod
    def _full_batch(self, config: RunT) -> tuple[Any, tuple[int, Any]]:
        """A batch of random symbols as large as in training; and the arguments that :meth:`_sizes` gives."""


@dataclass(frozen=True)
class ExampleNetworks(Networks[ModelConfigT, ExampleRunT, PreparedT]):
    """Networks that learn from separate examples, in batches of those of similar length.

    Splits of the prepared task have ``batches(order)``, unless a kind of task makes its batches itself.
    """

    def _batches(self, config: ExampleRunT, text: PreparedT, seed: int) -> Callable[[int], Iterator[Any]]:
        train, order = self._training_order(config, text, seed)
        return lambda start: train.batches(order(start=start))

    def _training_order(
        self, config: ExampleRunT, text: PreparedT, seed: int
    ) -> tuple[Any, Callable[..., Iterator[Indices]]]:
        """The split trained on, and from ``start``, a batch's number, to the indices of it and of all that follow."""
        train = self._training_split(config, text)
        batch = config.training.batch.model_dump()
        return train, partial(endless_batches, self._lengths(train), seed=seed, **batch)

    def _training_split(self, config: ExampleRunT, text: PreparedT) -> Any:
        """All that is trained on."""
        return text.split("train")

    def _validation(self, config: ExampleRunT, text: PreparedT) -> Sequence[Any]:
        split = text.split("valid")
        return [split.batch(indices) for indices in self._every_batch(split)]

    def _every_batch(self, split: Any) -> list[Indices]:
        """A split's examples, those of similar length together, each once, in an order that never changes."""
        return epoch_batches(self._lengths(split), pool=10**6, seed=0, epoch=0, tokens=4000)

    @abstractmethod
    def _lengths(self, split: Any) -> Sequence[NDArray[np.integer]]:
        """Per axis the lengths of a split's examples; the first is what a budget of tokens counts."""


def ready(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, on a GPU where there is one."""
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def full_batch_size(batch: BatchConfig, length: int) -> int:
    """How many examples of ``length`` symbols a full batch has."""
    return batch.sentences or max(1, (batch.tokens or length) // length)


def _parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
