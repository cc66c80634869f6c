"""The generated task `copy`: random sequences of symbols, which a model is to repeat.

No sequence is stored. Each is drawn when it is needed, from its number, so that there can be any number of them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field

from shared.config import Strict, build
from shared.data.splits import Accompanied

FILE = "copy.json"


class Copy(Strict):
    """Parameters of `copy`.

    Attributes:
        seed: of all sequences.
        symbols: how many different ones there are; they are the numbers from 1.
    """

    seed: int = Field(ge=0)
    symbols: int = Field(ge=2, le=255)

    def draw(self, split: str, number: int, length: int, excluded: Collection[bytes]) -> bytes:
        """A sequence of a split: ``length`` symbols, each of them uniform and independent of the others.

        The arguments alone decide it. It is drawn anew for as long as it is one of those ``excluded``.
        """
        rng = random.Random(f"copy {split} {self.seed} {number}")
        alphabet = range(1, self.symbols + 1)
        while (word := bytes(rng.choices(alphabet, k=length))) in excluded:
            pass
        return word


def copy(values: Mapping[str, Any]) -> Accompanied:
    """No splits, but the file :data:`FILE` with the parameters, which is all that is needed to draw sequences.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Copy`).
    """
    parameters = build(Copy, values, where="parameters of the generated task 'copy'")
    return Accompanied({}, {FILE: parameters.model_dump_json() + "\n"})
