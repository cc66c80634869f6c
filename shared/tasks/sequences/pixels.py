"""Pictures as sequences of pixels: made smaller and coarser if asked, kept on disk, read back; and their batches.

Shape letters: N pictures of a split, B of a batch, T pixels of a picture, row by row; a colour picture has its red,
green and blue value one after the other at every place, so that T is 3,072 for CIFAR-10 (Katharopoulos et al. 2020,
section 4.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared.data.batching import Indices
from shared.data.storage import load_arrays, reading_arrays, save_arrays, write_summary
from shared.errors import ReplicationError
from shared.tasks.sequences.batches import SequenceBatch, Sequences
from shared.tasks.sequences.settings import PixelCorpusConfig


def open_split(config: PixelCorpusConfig, folder: Path, name: str) -> Sequences:
    """The pictures of ``train``, ``valid`` or a test split, each pixel to be predicted from those before it.

    Before the first one comes a start symbol, the number of levels. The first pixel is given, as Katharopoulos et al.
    give it (section 4.2): 783 pixels of 784 are scored. Nothing is random, so that the seed of a batch changes nothing.
    """
    (pixels,) = load_arrays(folder / name, ("pixels",))  # (N, T) uint8, mapped into memory

    def batch(indices: Indices, seed: Sequence[int] = ()) -> SequenceBatch:
        targets = torch.from_numpy(pixels[indices].astype(np.int64))
        start = torch.full((len(targets), 1), config.levels)
        scored = torch.ones_like(targets, dtype=torch.bool)
        scored[:, 0] = False
        return SequenceBatch(torch.cat((start, targets[:, :-1]), dim=1), targets, scored)

    return Sequences((np.full(len(pixels), pixels.shape[1]),), batch)


def pictures(pixels: NDArray[np.integer], shape: Sequence[int], levels: int) -> NDArray[np.uint8]:
    """Pixels (…, T) as pictures (…, height, width, channels) of 0 to 255, the darkest and the brightest level."""
    return np.rint(pixels * (255 / (levels - 1))).astype(np.uint8).reshape(*pixels.shape[:-1], *shape)


def prepare(config: PixelCorpusConfig, dataset: Path, out: Path) -> dict[str, object]:
    """Write every split of ``dataset``, the files ``<split>.images.npy``, as sequences of pixels into ``out``.

    Returns:
        A summary: shape of the pictures, levels; of each split the number of pictures, and but for train how many of
        them train has too: smaller and coarser, different pictures can become the same.

    Raises:
        ReplicationError: a file is missing or damaged, or pictures cannot be parted into squares of that side.
    """
    train: set[bytes] = set()
    summary: dict[str, Any] = {"dataset": config.dataset, "levels": config.levels, "splits": {}}
    for split in config.splits:
        path = dataset / f"{split}.images.npy"
        with reading_arrays(path, f"check the split's name, or fetch {dataset.name} again"):
            whole = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        images = reduced(whole[: config.images.get(split)], config)
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
    return (means * np.uint16(config.levels) // np.uint16(256)).astype(np.uint8)
