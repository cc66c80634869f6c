"""Separate examples in batches, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from shared.data.batching import Indices, endless_batches, epoch_batches
from shared.data.storage import read_summary
from shared.data.tokenizers import Tokenizer, load_tokenizer
from shared.training.config import BatchConfig

VALIDATED = 4000
"""Symbols of a batch of validation."""


class Batch:
    """Base of batches, which are frozen dataclasses of tensors and of what belongs to them."""

    @property
    def tokens(self: Any) -> int:
        """How many symbols or elements count: those where its ``mask`` is true."""
        return int(self.mask.sum())

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        return self.each(lambda part: part.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The batch with each of its tensors changed."""
        return type(self)(**tree_map_only(Tensor, change, vars(self)))


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights lie."""
    return next(model.parameters()).device


class Split:
    """Base of the splits of prepared tasks, of separate examples.

    A split has ``lengths``, per axis the lengths (examples,) of its examples, of which the first is what a budget of
    tokens counts; and ``batch(indices)``, the examples with these indices.
    """

    def __len__(self: Any) -> int:
        return len(self.lengths[0])


def training_order(split: Any, batch: BatchConfig, seed: int) -> Callable[..., Iterator[Indices]]:
    """From ``start``, a batch's number, to the indices of it and of all that follow."""
    return partial(endless_batches, split.lengths, seed=seed, **batch.model_dump())


def every_batch(split: Any, *, tokens: int | None = None, sentences: int | None = None) -> list[Indices]:
    """Each example once, those of similar length together, in an order that never changes."""
    return epoch_batches(split.lengths, pool=10**6, seed=0, epoch=0, tokens=tokens, sentences=sentences)


@dataclass(frozen=True)
class Prepared:
    """Base of what the prepare stage leaves for training and evaluation, read from its folder when it is asked for.

    A file that is missing or damaged raises a `ReplicationError` then. Its batches are those of separate examples.

    Attributes:
        folder: of the prepared task.
        config: the task's corpus; None where nothing asks for it.
    """

    folder: Path
    config: Any = None

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """What the kind's ``prepare`` returned."""
        return read_summary(self.folder)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Of the text, where it is of one language."""
        return load_tokenizer(self.folder / "text.tokenizer")

    def split(self, name: str) -> Any:
        """An encoded split: ``train``, ``valid`` or a test split."""
        raise NotImplementedError

    def training_split(self, training: Any) -> Any:
        """All that is trained on."""
        return self.split("train")

    def batches(self, training: Any, seed: int) -> Callable[[int], Iterator[Any]]:
        """From a batch's number to that batch of training and all that follow it; those of similar length together."""
        split = self.training_split(training)
        order = training_order(split, training.batch, seed)
        return lambda start: map(split.batch, order(start=start))

    def valid(self, training: Any) -> Iterable[Any]:
        """The validation split in batches of one size, whatever that of training is."""
        split = self.split("valid")
        return [split.batch(indices) for indices in every_batch(split, tokens=VALIDATED)]


def full_batch_size(batch: BatchConfig, length: int) -> int:
    """How many examples of ``length`` symbols a full batch has."""
    return batch.sentences or max(1, (batch.tokens or length) // length)
