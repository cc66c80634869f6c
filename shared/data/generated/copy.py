"""The generated task `copy`: random sequences of symbols, which a model must repeat.

No sequence is stored. Each sequence is drawn from its number when it is needed, so their number is unlimited.
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
        seed: seed of all sequences.
        symbols: size of the alphabet; the symbols are numbered from 1.
    """

    seed: int = Field(ge=0)
    symbols: int = Field(ge=2, le=255)

    def draw(self, split: str, number: int, length: int, excluded: Collection[bytes]) -> bytes:
        """Draw a sequence of a split: ``length`` independent uniform symbols.

        The result depends on the arguments alone. Sequences in ``excluded`` are rejected.
        """
        rng = random.Random(f"copy {split} {self.seed} {number}")
        alphabet = range(1, self.symbols + 1)
        while (word := bytes(rng.choices(alphabet, k=length))) in excluded:
            pass
        return word


def copy(values: Mapping[str, Any]) -> Accompanied:
    """Return a corpus without splits and with the file :data:`FILE`, whose parameters suffice to draw sequences.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Copy`).
    """
    parameters = build(Copy, values, where="parameters of the generated task 'copy'")
    return Accompanied({}, {FILE: parameters.model_dump_json() + "\n"})
