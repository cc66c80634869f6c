"""Attention over an image compared to the object that a word names (Liu et al. 2017), and to the other objects.

The image is divided into rows × columns of equal places, numbered row by row as the features are. A box has the left,
top, right and bottom end of an object, relative to the width and height of the image. The weight of a place is spread
uniformly over its area.

Shape letters: W boxes, each of a word, L places (rows · columns), O objects of the image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pointing_statistics(weights: ArrayLike, boxes: ArrayLike, rows: int, columns: int) -> dict[str, float]:
    """Return the additive statistics of one image as values that JSON can hold; divide them by ``words`` for means.

    Args:
        weights: (W, L) attention of each word that names an object; every row sums to one.
        boxes: (W, 4) the box of the object of each word.
        rows, columns: size of the grid.

    Returns:
        ``mass``, the attention inside of the boxes, whose mean is attention correctness; ``area``, the same for uniform
        attention; ``hits``, how often the centre of the place with the highest weight is inside of the box, whose mean
        is pointing accuracy (Zhang et al. 2016); ``centres``, the same for a random place; ``words``, W. Places with
        tied weights share a hit, so uniform attention scores as a random place.

    Raises:
        ValueError: as :func:`coverage`, or the shapes do not fit.
    """
    weights, boxes = np.asarray(weights, dtype=np.float64), np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    if weights.shape != (len(boxes), rows * columns):
        raise ValueError(f"{weights.shape} weights are not of {len(boxes)} boxes and {rows} x {columns} places")
    inside, centres = coverage(boxes, rows, columns), centres_inside(boxes, rows, columns)
    most = weights == weights.max(axis=1, keepdims=True)
    return {
        "mass": float((weights * inside).sum()),
        "area": float(inside.mean(axis=1).sum()),
        "hits": float(((most & centres).sum(axis=1) / most.sum(axis=1)).sum()),
        "centres": float(centres.mean(axis=1).sum()),
        "words": len(boxes),
    }


def contrast_statistics(
    weights: ArrayLike, things: ArrayLike, boxes: ArrayLike, rows: int, columns: int
) -> dict[str, float]:
    """Return additive statistics that compare attention on the named object to attention on the other objects.

    Attention on all objects alike scores above uniform attention, whichever object a word names; this comparison
    detects it. An image with one object has no other object and gets zeros.

    Args:
        weights: (W, L) attention of each word that names an object; every row sums to one.
        things: (W,) index of the box of the named object.
        boxes: (O, 4) the boxes of all objects of the image.
        rows, columns: size of the grid.

    Returns:
        ``named``, the attention inside of the boxes of the named objects; ``others``, the attention inside of the box
        of another object, averaged over the others; ``compared``, the number of words in these sums: W or 0.

    Raises:
        ValueError: as :func:`coverage`.
    """
    weights, things = np.asarray(weights, dtype=np.float64), np.asarray(things, dtype=np.int64)
    inside = weights @ coverage(boxes, rows, columns).T  # (W, O)
    if inside.shape[1] < 2:
        return {"named": 0.0, "others": 0.0, "compared": 0}
    named = inside[np.arange(len(things)), things]
    others = (inside.sum(axis=1) - named) / (inside.shape[1] - 1)
    return {"named": float(named.sum()), "others": float(others.sum()), "compared": len(things)}


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
