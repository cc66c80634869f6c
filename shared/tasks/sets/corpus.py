"""Sets of vectors as arrays, read from generated ones or composed of labelled pictures, and their batches.

Shape letters: N sets of a split, P elements of all of them, B sets of a batch, n elements of its largest, X numbers of
an element, T numbers of a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shared.data.batching import Indices
from shared.data.storage import load_arrays, read_columns, reading_arrays, save_arrays, write_summary
from shared.errors import ReplicationError
from shared.tasks.batches import Batch, Prepared, Split
from shared.tasks.sets.settings import SetCorpusConfig

ARRAYS = ("elements", "sizes", "targets")
Arrays = Mapping[str, NDArray[Any]]
"""Of a split: ``elements`` (P, X) float32, set after set; ``sizes`` (N,), how many each has; ``targets`` (N, T)."""


@dataclass(frozen=True)
class SetBatch(Batch):
    """Sets, 0 after the last element of each; their mask, true at elements; and what is to be found."""

    elements: Tensor  # (B, n, X) float32
    mask: Tensor  # (B, n) bool
    targets: Tensor  # (B, T) float32


@dataclass(frozen=True)
class Sets(Split):
    """One split."""

    elements: NDArray[np.float32]
    sizes: NDArray[np.int64]
    targets: NDArray[np.float32]

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """One array (N,), for :mod:`shared.data.batching`."""
        return (self.sizes,)

    def batch(self, indices: Indices) -> SetBatch:
        """The sets with these indices."""
        sizes, ends = self.sizes[indices], np.cumsum(self.sizes)[indices]
        places = np.arange(sizes.max())
        mask = places < sizes[:, None]
        elements = np.zeros((*mask.shape, self.elements.shape[1]), dtype=np.float32)
        elements[mask] = self.elements[((ends - sizes)[:, None] + places)[mask]]
        return SetBatch(*map(torch.from_numpy, (elements, mask, self.targets[indices])))


class PreparedSets(Prepared):
    """What the prepare stage leaves, with the same settings."""

    config: SetCorpusConfig

    @property
    def sizes(self) -> tuple[int, tuple[int, int]]:
        """X; how many vectors a model makes of a set, and of how many numbers."""
        return self.config.numbers, self.config.outputs

    def split(self, name: str) -> Sets:
        """``train``, ``valid`` or a test split."""
        return Sets(*load_arrays(self.folder / name, ARRAYS))


PREPARED = PreparedSets


def prepare(config: SetCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write the arrays of every split of ``dataset`` into ``out``.

    Returns:
        A summary: of each split the numbers of sets and of elements.

    Raises:
        ReplicationError: a file is missing or damaged, or does not fit the settings.
    """
    summary: dict[str, Any] = {"dataset": config.dataset, "splits": {}}
    for split in config.splits:
        arrays = _composed(config, dataset, split) if config.composed else _read(dataset / f"{split}.npz")
        sizes, (_, numbers) = arrays["sizes"], arrays["elements"].shape
        if numbers != config.numbers or not config.sizes[0] <= sizes.min() <= sizes.max() <= config.sizes[1]:
            raise ReplicationError(
                f"split '{split}' of {dataset} has {sizes.min()} to {sizes.max()} elements of {numbers} numbers in a "
                f"set; set corpus.sizes and corpus.numbers to that."
            )
        save_arrays(out / split, arrays)
        summary["splits"][split] = {"sets": len(sizes), "elements": int(sizes.sum())}
    return write_summary(out, config, summary)


def _read(path: Path) -> Arrays:
    with reading_arrays(path, "check the split's name, or fetch it again"), np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in ARRAYS}


def _composed(config: SetCorpusConfig, dataset: Path, split: str) -> Arrays:
    """Sets of the pictures of one split, as Lee et al. (2019, section 5.2) compose them of characters.

    Size and number of different labels are uniform; each of these labels is there once, and the rest is drawn of them.
    """
    columns = read_columns(dataset, split, ["text", "label"])
    pictures = np.array([line.split() for line in columns["text"]], dtype=np.float32) / (config.levels - 1)
    known, labels = np.unique(columns["label"], return_inverse=True)
    of_label = [np.flatnonzero(labels == label) for label in range(len(known))]
    rng = np.random.default_rng(list(split.encode()))
    sizes = rng.integers(*config.sizes, config.composed[split], endpoint=True)
    counts = rng.integers(1, np.minimum(sizes, len(known)), endpoint=True)
    chosen = list[int]()
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        different = rng.permutation(len(known))[:count]
        drawn = np.concatenate((different, rng.choice(different, size - count)))
        chosen += [int(rng.choice(of_label[label])) for label in drawn]
    return {"elements": pictures[chosen], "sizes": sizes, "targets": counts[:, None].astype(np.float32)}
