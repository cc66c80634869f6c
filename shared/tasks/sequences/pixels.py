"""Pictures as sequences of pixels: made smaller and coarser if asked, kept on disk, read back; and their batches.

Shape letters: N pictures of a split, B of a batch, T pixels of a picture, row by row; a colour picture has its red,
green and blue value one after the other at every place, so that T is 3,072 for CIFAR-10 (Katharopoulos et al. 2020,
section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from shared.data.batching import Indices
from shared.data.storage import load_arrays, read_summary, save_arrays, write_summary
from shared.errors import ReplicationError
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch
from shared.tasks.sequences.settings import PixelCorpusConfig


@dataclass(frozen=True)
class PixelSplit:
    """One split.

    Attributes:
        pixels: (N, T) uint8, mapped into memory.
        levels: values that a pixel can have.
    """

    pixels: NDArray[np.uint8]
    levels: int

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def lengths(self) -> tuple[NDArray[np.int64]]:
        """(N,) pixels of each picture, by which batches are sorted: all have as many."""
        return (np.full(len(self), self.pixels.shape[1]),)

    def batch(self, indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        """The pictures with these indices, each pixel to be predicted from a start symbol and those before it.

        The start symbol is the number of levels. The first pixel is given, as Katharopoulos et al. give it (section
        4.2): 783 pixels of 784 are scored. Nothing is random, so that the seed changes nothing.
        """
        targets = torch.from_numpy(self.pixels[indices].astype(np.int64))
        start = torch.full((len(targets), 1), self.levels)
        scored = torch.ones_like(targets, dtype=torch.bool)
        scored[:, 0] = False
        return SequenceBatch(torch.cat((start, targets[:, :-1]), dim=1), targets, scored)


@dataclass(frozen=True)
class PreparedPixels(PreparedSequences):
    """What the prepare stage leaves for training and evaluation: the splits, and how to make pictures of pixels.

    Attributes:
        folder: of the prepared task.
        shape: height, width and channels of every picture; T is their product.
        levels: values that a pixel can have.
        unit: what a symbol is.
    """

    folder: Path
    shape: tuple[int, int, int]
    levels: int
    unit: ClassVar[str] = "pixel"

    @property
    def sizes(self) -> tuple[int, bool]:
        """The levels, and the start symbol after them; each pixel is predicted from those before it."""
        return self.levels + 1, True

    @classmethod
    def load(cls, folder: Path) -> PreparedPixels:
        """Open a prepared task; raises `ReplicationError` where it was not prepared."""
        summary = read_summary(folder)
        height, width, channels = summary["shape"]
        return cls(folder, (height, width, channels), summary["levels"])

    def split(self, name: str) -> PixelSplit:
        """The pictures of ``train``, ``valid`` or a test split."""
        (pixels,) = load_arrays(self.folder / name, ("pixels",))
        return PixelSplit(pixels, self.levels)

    def pictures(self, pixels: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Pixels (…, T) as pictures (…, height, width, channels) of 0 to 255, the darkest and the brightest level."""
        values: NDArray[np.uint8] = np.rint(pixels * (255 / (self.levels - 1))).astype(np.uint8)
        return values.reshape(*pixels.shape[:-1], *self.shape)


def prepare_pixels(config: PixelCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write every split as sequences of pixels into ``out``.

    Args:
        config: the task's corpus.
        dataset: the fetched folder with ``<split>.images.npy`` files.
        out: the folder to write; only whole when this returns.

    Returns:
        A summary: shape of the pictures, levels; of each split the number of pictures, and but for train how many of
        them train has too: smaller and coarser, different pictures can become the same.

    Raises:
        ReplicationError: a file is missing or damaged, or pictures cannot be parted into squares of that side.
    """
    train: set[bytes] = set()
    summary: dict[str, Any] = {"dataset": config.dataset, "levels": config.levels, "splits": {}}
    for split in config.splits:
        images = reduced(_load(dataset, split)[: config.images.get(split)], config)
        summary["shape"] = images.shape[1:]
        pixels = images.reshape(len(images), -1)
        save_arrays(out / split, {"pixels": pixels})
        rows = [row.tobytes() for row in pixels]
        counts = summary["splits"][split] = {"images": len(rows)}
        if split == "train":
            train.update(rows)
        else:
            counts["in_train"] = sum(row in train for row in rows)
    return write_summary(out, config, summary)


def _load(dataset: Path, split: str) -> NDArray[np.uint8]:
    path = dataset / f"{split}.images.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; run the fetch stage, and check the split's name.") from None
    except (OSError, ValueError, EOFError) as error:
        raise ReplicationError(f"{path} is damaged ({error}); fetch {dataset.name} again.") from None


def reduced(images: NDArray[np.uint8], config: PixelCorpusConfig) -> NDArray[np.uint8]:
    """(N, H, W, C) to (N, H / pool, W / pool, C): means, rounded, and then in so many levels.

    Sixteen bits hold the sum over a square of the largest side, and a value times the largest number of levels.
    """
    side, (count, height, width, channels) = config.pool, images.shape
    if height % side or width % side:
        raise ReplicationError(
            f"pictures of {height} x {width} pixels cannot be parted into squares of {side}; choose a 'pool' that "
            "divides both."
        )
    squares = images.reshape(count, height // side, side, width // side, side, channels)
    sums = squares.sum(axis=(2, 4), dtype=np.uint16)
    means = (sums + np.uint16(side**2 // 2)) // np.uint16(side**2)
    levels: NDArray[np.uint16] = means * np.uint16(config.levels) // np.uint16(256)
    return levels.astype(np.uint8)
