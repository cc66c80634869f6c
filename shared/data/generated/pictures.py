"""The generated task `pictures`: small grey pictures of a few strokes, in the files that fetched pictures have.

They are for trying out what reads and draws pictures, in seconds and without a download; nobody is to learn from them.
"""

from __future__ import annotations

import io
import random
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from shared.config import Strict, build
from shared.data.splits import Accompanied

_PEN = 3  # side of the square that is moved along a stroke
_FAINTEST = 128


class Pictures(Strict):
    """Parameters of `pictures`.

    Attributes:
        seed: of every split (each split draws from a generator of its own).
        side: pixels, of height and of width.
        strokes: of a picture, the later ones over the earlier ones.
        splits: split name to its pictures. Splits named earlier do not depend on later ones.
    """

    seed: int = Field(ge=0)
    side: int = Field(ge=8, le=256)
    strokes: PositiveInt
    splits: dict[str, Annotated[int, Field(gt=0, le=10_000)]] = Field(min_length=1)


def pictures(values: Mapping[str, Any]) -> Accompanied:
    """No splits, but a file ``<split>.images.npy`` for each: (N, side, side, 1) uint8, black but for the strokes.

    No picture is there twice, within a split or in two.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Pictures`).
    """
    parameters = build(Pictures, values, where="parameters of the generated task 'pictures'")
    seen: set[bytes] = set()
    files: dict[str, bytes] = {}
    for split, count in parameters.splits.items():
        rng = random.Random(f"pictures {split} {parameters.seed}")
        drawn: list[NDArray[np.uint8]] = []
        while len(drawn) < count:
            picture = _picture(parameters, rng)
            if picture.tobytes() not in seen:
                seen.add(picture.tobytes())
                drawn.append(picture)
        file = io.BytesIO()
        np.save(file, np.stack(drawn), allow_pickle=False)
        files[f"{split}.images.npy"] = file.getvalue()
    return Accompanied({}, files)


def _picture(parameters: Pictures, rng: random.Random) -> NDArray[np.uint8]:
    """(side, side, 1); every stroke is of one grey, and goes straight from a random place to another."""
    picture = np.zeros((parameters.side, parameters.side, 1), np.uint8)
    for _ in range(parameters.strokes):
        top, left, bottom, right = (rng.randrange(parameters.side - _PEN + 1) for _ in range(4))
        grey = rng.randint(_FAINTEST, 255)
        steps = max(abs(bottom - top), abs(right - left), 1)
        for i in range(steps + 1):
            # Whole numbers, so that the bytes are the same on every machine.
            row, column = top + (bottom - top) * i // steps, left + (right - left) * i // steps
            picture[row : row + _PEN, column : column + _PEN] = grey
    return picture
