"""Boxes of objects on the grid of places that the features of an image describe.

The image is divided into rows × columns of equal places, numbered row by row as the features are. A box has the left,
top, right and bottom end of an object, relative to the width and height of the image.

Shape letters: W boxes, L places (rows · columns).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def coverage(boxes: ArrayLike, rows: int, columns: int) -> Floats:
    """Return the share of the area of each place that is inside of each box: (W, 4) to (W, L).

    Raises:
        ValueError: a box has no area or extends beyond the image.
    """
    left, top, right, bottom = _ends(boxes)
    across, down = _overlap(left, right, columns), _overlap(top, bottom, rows)
    return (down[:, :, None] * across[:, None, :]).reshape(-1, rows * columns)


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
    left, top, right, bottom = _ends(boxes)
    across, down = _within(left, right, columns), _within(top, bottom, rows)
    return (down[:, :, None] & across[:, None, :]).reshape(-1, rows * columns)


def _ends(boxes: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    left, top, right, bottom = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T
    if not ((left >= 0) & (left < right) & (right <= 1) & (top >= 0) & (top < bottom) & (bottom <= 1)).all():
        raise ValueError("a box must have an area and lie inside of the image, with ends from 0 to 1")
    return left, top, right, bottom


def _overlap(start: Floats, end: Floats, places: int) -> Floats:
    """Return the share of each of ``places`` equal intervals that is between start and end: (W,) to (W, places)."""
    edges = np.arange(places + 1) / places
    overlap = np.minimum(end[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1])
    return np.asarray(places * np.maximum(overlap, 0))


def _within(start: Floats, end: Floats, places: int) -> NDArray[np.bool_]:
    """Return whether the centre of each of ``places`` equal intervals is between start and end: (W,) to (W, places)."""
    middles = (np.arange(places) + 0.5) / places
    return np.asarray((start[:, None] <= middles) & (middles <= end[:, None]))
