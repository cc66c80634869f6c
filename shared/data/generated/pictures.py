"""The generated task `pictures`: small grey pictures of a few strokes, in the file format of fetched pictures.

The pictures serve to test the code for pictures in seconds and without a download, not to train models for results.
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
from shared.data.splits import Accompanied, SplitName

_PEN = 3  # side of the square brush of a stroke
_FAINTEST = 128


class Pictures(Strict):
    """Parameters of `pictures`.

    Attributes:
        seed: seed of every split (each split has its own generator).
        side: height and width in pixels.
        strokes: number of strokes per picture; later ones cover earlier ones.
        splits: split name to its pictures. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    side: int = Field(ge=8, le=256)
    strokes: PositiveInt
    splits: dict[SplitName, Annotated[int, Field(gt=0, le=10_000)]] = Field(min_length=1)


def pictures(values: Mapping[str, Any]) -> Accompanied:
    """Return a corpus with one file ``<split>.images.npy`` per split: (N, side, side, 1) uint8, on a black background.

    No picture occurs twice, within a split or in two.

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
    """Draw a picture (side, side, 1); a stroke is a straight line of one grey between two random points."""
    picture = np.zeros((parameters.side, parameters.side, 1), np.uint8)
    for _ in range(parameters.strokes):
        top, left, bottom, right = (rng.randrange(parameters.side - _PEN + 1) for _ in range(4))
        grey = rng.randint(_FAINTEST, 255)
        steps = max(abs(bottom - top), abs(right - left), 1)
        for i in range(steps + 1):
            # Integer arithmetic, so that the bytes are the same on every machine.
            row, column = top + (bottom - top) * i // steps, left + (right - left) * i // steps
            picture[row : row + _PEN, column : column + _PEN] = grey
    return picture
