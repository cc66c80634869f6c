"""Features of images: computed once, stored as float16, memory-mapped for reading; and boxes on their grid of places.

The image is divided into rows × columns of equal places, numbered row by row as the features are. A box has the left,
top, right and bottom end of an object, relative to the width and height of the image.

Shape letters: N images, L places (rows · columns), D values of a place, W boxes.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import track

from shared.errors import ReplicationError
from shared.vision.encoders import ImageEncoder

Floats = NDArray[np.float64]
# Batch sizes. On a CPU small batches are faster: the activations of large ones exceed the caches, and need newly mapped
# memory.
_BATCH_CPU, _BATCH_ACCELERATOR = 4, 128


@dataclass(frozen=True)
class Grid:
    """The shape of the features of an image: a grid of places, row by row, with ``size`` values each."""

    rows: int
    columns: int
    size: int


def compute_features(
    encoder: ImageEncoder, images: Callable[[range], NDArray[np.uint8]], count: int, path: Path, *, label: str,
    batch: int | None = None,
) -> None:  # fmt: skip
    """Write the annotation vectors of images to one ``.npy`` file: (count, L, D) float16.

    The data is written to a partial file beside ``path``, which is renamed when it is complete. On a terminal a
    progress bar shows the remaining time.

    Args:
        encoder: the encoder; it runs on its current device.
        images: function from indices to pixels (B, height, width, 3).
        count: number of images.
        path: path of the file; its folder is created if it does not exist.
        batch: images per batch; default: a value for the device.
        label: text before the progress bar.

    Raises:
        ReplicationError: the disk is full, or a value is too large for float16.
    """
    shape = (count, encoder.rows * encoder.columns, encoder.size)
    device = next((weights.device for weights in encoder.parameters()), torch.device("cpu"))
    batch = batch or (_BATCH_CPU if device.type == "cpu" else _BATCH_ACCELERATOR)
    path.parent.mkdir(parents=True, exist_ok=True)
    needed, free = 2 * math.prod(shape), shutil.disk_usage(path.parent).free
    if free < needed:
        raise ReplicationError(
            f"{path} will have {needed / 1e9:.1f} GB, but there are {free / 1e9:.1f} GB of free disk; make room, or "
            "average over places (the encoder's 'pool')."
        )
    partial, console = path.with_name(f"{path.name}.partial"), Console()
    try:
        written = np.lib.format.open_memmap(partial, "w+", np.float16, shape)
        starts = range(0, count, batch)
        for start in track(starts, label, console=console, disable=not console.is_terminal):
            chunk = range(start, min(start + batch, count))
            with torch.inference_mode():
                features = encoder(torch.from_numpy(images(chunk)).to(device))
            largest = float(features.abs().amax())
            if not largest <= torch.finfo(torch.float16).max:  # this comparison also catches NaN
                raise ReplicationError(
                    f"an annotation vector has the value {largest:g}, which float16 cannot hold; choose another layer."
                )
            written[start : chunk.stop] = features.half().cpu().numpy()
        written.flush()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_features(path: Path) -> NDArray[np.float16]:
    """Memory-map the features of `compute_features`: (N, L, D) float16, read-only.

    Raises:
        ReplicationError: the file is missing, truncated or of another type.
    """
    try:
        features: NDArray[np.float16] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run the features stage again.") from None
    if features.dtype != np.float16 or features.ndim != 3:
        raise ReplicationError(
            f"{path} holds {features.dtype} of shape {features.shape}, not float16 of (images, places, values); run "
            "the features stage again."
        )
    return features


def coverage(boxes: ArrayLike, rows: int, columns: int) -> Floats:
    """Return the share of the area of each place that is inside of each box: (W, 4) to (W, L).

    Raises:
        ValueError: a box has no area or extends beyond the image.
    """

    def overlap(start: Floats, end: Floats, places: int) -> Floats:
        """The share of each of so many equal intervals that is between start and end: (W, 1) to (W, places)."""
        edges = np.arange(places + 1) / places
        return np.asarray(places * np.maximum(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0))

    return _on_grid(boxes, rows, columns, overlap)


def box_shares(boxes: ArrayLike, rows: int, columns: int) -> Floats:
    """Return the share of the area of each box in each place: (W, 4) to (W, L); every row sums to one.

    Raises:
        ValueError: as :func:`coverage`.
    """
    inside = coverage(boxes, rows, columns)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))


def centres_inside(boxes: ArrayLike, rows: int, columns: int) -> NDArray[np.bool_]:
    """Return whether the centre of each place is inside of each box: (W, 4) to (W, L).

    Raises:
        ValueError: as :func:`coverage`.
    """

    def within(start: Floats, end: Floats, places: int) -> NDArray[np.bool_]:
        middles = (np.arange(places) + 0.5) / places
        return np.asarray((start <= middles) & (middles <= end))

    return _on_grid(boxes, rows, columns, within)


def _on_grid(boxes: ArrayLike, rows: int, columns: int, along: Callable[[Floats, Floats, int], Any]) -> Any:
    """(W, L), the products of what ``along`` one axis and the other says of starts and ends (W, 1)."""
    left, top, right, bottom = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T[:, :, None]
    if not ((left >= 0) & (left < right) & (right <= 1) & (top >= 0) & (top < bottom) & (bottom <= 1)).all():
        raise ValueError("a box must have an area and lie inside of the image, with ends from 0 to 1")
    down, across = along(top, bottom, rows), along(left, right, columns)
    return (down[:, :, None] * across[:, None, :]).reshape(-1, rows * columns)
