"""Attention over an image compared to the object that a word names (Liu et al. 2017), and to the other objects.

The weight of a place is spread uniformly over its area; :mod:`shared.vision.features` says what boxes and places are.

Shape letters: W boxes, each of a word, L places (rows · columns), O objects of the image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shared.vision.features import centres_inside, coverage


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
        ValueError: as :func:`coverage`.
    """
    weights, boxes = np.asarray(weights, dtype=np.float64), np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
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
