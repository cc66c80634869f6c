"""Separate examples in batches, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices, endless_batches, epoch_batches
from shared.training.config import BatchConfig

VALIDATED = 4000
"""Symbols of a batch of validation."""


class Batch:
    """Base of batches, which are frozen dataclasses of tensors and of what belongs to them."""

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        return self.each(lambda part: part.to(device, non_blocking=True))

    def each(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The batch with each of its tensors changed."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        changed = {
            name: tuple(map(change, value)) if isinstance(value, tuple) else change(value)
            for name, value in values.items()
            if isinstance(value, Tensor) or (isinstance(value, tuple) and isinstance(value[0], Tensor))
        }
        return type(self)(**values | changed)


class Split(Protocol):
    """A split of a prepared task."""

    @property
    def lengths(self) -> Sequence[NDArray[np.integer]]:
        """Per axis the lengths of the examples; the first is what a budget of tokens counts."""
        ...

    def batch(self, indices: Indices) -> Any:
        """The examples with these indices."""
        ...


def training_order(split: Split, batch: BatchConfig, seed: int) -> Callable[..., Iterator[Indices]]:
    """From ``start``, a batch's number, to the indices of it and of all that follow."""
    return partial(endless_batches, split.lengths, seed=seed, **batch.model_dump())


def training_batches(split: Split, batch: BatchConfig, seed: int) -> Callable[[int], Iterator[Any]]:
    """From a batch's number to that batch of training and all that follow it; those of similar length together."""
    order = training_order(split, batch, seed)
    return lambda start: map(split.batch, order(start=start))


def every_batch(split: Split, *, tokens: int | None = None, sentences: int | None = None) -> list[Indices]:
    """Each example once, those of similar length together, in an order that never changes."""
    return epoch_batches(split.lengths, pool=10**6, seed=0, epoch=0, tokens=tokens, sentences=sentences)


def validation_batches(split: Split) -> list[Any]:
    """A validation split in batches of one size, whatever that of training is."""
    return [split.batch(indices) for indices in every_batch(split, tokens=VALIDATED)]
