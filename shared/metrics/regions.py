"""Whether attention over an image rests on the object that a word names (Liu et al. 2017), and not on any object.

The weight of a place is taken to lie evenly on its area; boxes and places are those of :mod:`shared.vision.places`.

Shape letters: W words that have a box, L places (rows · columns), O objects of the image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shared.vision.places import centres_inside, coverage


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
    """The additive statistics of one image, ready for JSON, of attention on what is named beside what is not.

    Attention that rests on objects, whichever a word names, is far above what even attention would get; but it has as
    much in the boxes of the others. An image with one object tells nothing of that and has zeros.

    Args:
        weights: (W, L) attention, that sums to one, at each word that names an object.
        things: (W,) which of the boxes is that object's.
        boxes: (O, 4) of all objects of the image.
        rows, columns: of the grid.

    Returns:
        ``named``, the attention inside of the boxes of what is named; ``others``, that inside of a box of another
        object, as the mean over these; ``compared``, the words summed over: W or 0.

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
