"""Whether attention over an image rests on the object that a word names (Liu et al. 2017).

The image is cut into a grid of equal places, rows × columns of them, numbered row by row as the features are; the
weight of a place is taken to lie evenly on its area. A box is the left, top, right and bottom end of an object, as
shares of the image's width and height.

Shape letters: W words that have a box, L places (rows · columns).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def coverage(boxes: ArrayLike, rows: int, columns: int) -> Floats:
    """Share of each place's area that lies inside of each box: (W, 4) to (W, L).

    Raises:
        ValueError: a box has no area or reaches out of the image.
    """
    left, top, right, bottom = _ends(boxes)
    across, down = _overlap(left, right, columns), _overlap(top, bottom, rows)
    return (down[:, :, None] * across[:, None, :]).reshape(-1, rows * columns)


def centres_inside(boxes: ArrayLike, rows: int, columns: int) -> NDArray[np.bool_]:
    """Whether the centre of each place lies inside of each box: (W, 4) to (W, L).

    Raises:
        ValueError: a box has no area or reaches out of the image.
    """
    left, top, right, bottom = _ends(boxes)
    across, down = _within(left, right, columns), _within(top, bottom, rows)
    return (down[:, :, None] & across[:, None, :]).reshape(-1, rows * columns)


def pointing_statistics(weights: ArrayLike, boxes: ArrayLike, rows: int, columns: int) -> dict[str, float]:
    """The additive statistics of one image, ready for JSON; each divided by ``words`` is a mean over words.

    Args:
        weights: (W, L) attention, that sums to one, at each word that names an object.
        boxes: (W, 4) of these objects.
        rows, columns: of the grid.

    Returns:
        ``mass``, the attention inside of the boxes, whose mean is attention correctness, and ``area``, what it is of
        even attention; ``hits``, how often the centre of the place attended to most lies inside, whose mean is
        pointing accuracy (Zhang et al. 2016), and ``centres``, what it is of a place drawn at random; ``words``, W.
        Of several places attended to equally each counts for its share, so that even attention points by chance.

    Raises:
        ValueError: as :func:`coverage`, or the shapes do not fit.
    """
    weights, boxes = np.asarray(weights, dtype=np.float64), np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    if weights.shape != (len(boxes), rows * columns):
        raise ValueError(
            f"{weights.shape} weights are not of {len(boxes)} boxes and {rows} x {columns} places"
        )
    inside, centres = coverage(boxes, rows, columns), centres_inside(boxes, rows, columns)
    most = weights == weights.max(axis=1, keepdims=True)
    return {
        "mass": float((weights * inside).sum()),
        "area": float(inside.mean(axis=1).sum()),
        "hits": float(((most & centres).sum(axis=1) / most.sum(axis=1)).sum()),
        "centres": float(centres.mean(axis=1).sum()),
        "words": len(boxes),
    }


def _ends(boxes: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    left, top, right, bottom = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T
    if not ((left >= 0) & (left < right) & (right <= 1) & (top >= 0) & (top < bottom) & (bottom <= 1)).all():
        raise ValueError("a box must have an area and lie inside of the image, with ends from 0 to 1")
    return left, top, right, bottom


def _overlap(start: Floats, end: Floats, places: int) -> Floats:
    """Share of each of so many stretches of a side that lies between start and end: (W,) to (W, places)."""
    edges = np.arange(places + 1) / places
    overlap = np.minimum(end[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1])
    return np.asarray(places * np.maximum(overlap, 0))


def _within(start: Floats, end: Floats, places: int) -> NDArray[np.bool_]:
    """Whether the middle of each of so many stretches of a side lies between start and end: (W,) to (W, places)."""
    middles = (np.arange(places) + 0.5) / places
    return np.asarray((start[:, None] <= middles) & (middles <= end[:, None]))
