"""Separate examples, whatever the task: the batches in which they are read, and what evaluation records of each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shared.data.batching import Indices, endless_batches, epoch_batches
from shared.metrics.registry import corpus_values
from shared.training.config import BatchConfig

Example = dict[str, Any]
VALIDATED = 4000
"""Symbols of a batch of validation."""


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


def write_examples(out: Path, examples: Sequence[Example]) -> None:
    """Write ``examples.jsonl.gz`` into ``out``; with no time in it, so that same results are same bytes."""
    lines = "".join(json.dumps(example, ensure_ascii=False) + "\n" for example in examples)
    write_lines(out, lines.encode())


def write_lines(out: Path, lines: bytes) -> None:
    """Write the lines of examples, as :func:`write_examples` does."""
    with gzip.GzipFile(out / "examples.jsonl.gz", "wb", mtime=0) as file:
        file.write(lines)


def judged(splits: Mapping[str, Sequence[Example]]) -> dict[str, float]:
    """Every measure of the first test split, and of the others with the split's name before it: ``hard.accuracy``."""
    metrics: dict[str, float] = {}
    for number, (split, examples) in enumerate(splits.items()):
        prefix = "" if number == 0 else f"{split}."
        metrics |= {prefix + name: value for name, value in corpus_values(examples).items()}
    return metrics
