"""The generated task `proteins`: random sequences of amino acids in families, in the file format of fetched proteins.

The sequences serve to test the code for proteins in seconds and without a download, not to train models for results.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.homology import AMINO_ACIDS, ANOMALOUS
from shared.data.splits import Corpus, Segment

_LETTERS = AMINO_ACIDS + ANOMALOUS
# Frequencies decrease from letter to letter, so that unigram statistics help; the anomalous letters are rare.
_WEIGHTS = (*range(100, 0, -5), *[1] * len(ANOMALOUS))


class Families(Strict):
    """The number of families of a split, and the number of proteins per family."""

    families: int = Field(gt=0, le=1000)
    members: int = Field(gt=0, le=100)


class Proteins(Strict):
    """Parameters of `proteins`.

    Attributes:
        seed: seed of every split (each split has its own generator).
        lengths: least and largest length of proteins in amino acids; a family has one length.
        changed: probability that a letter of the ancestor is redrawn for a member of a family.
        splits: split name to its families, which are in no other split. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    lengths: tuple[int, int]
    changed: float = Field(ge=0.05, le=1)
    splits: dict[str, Families] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Proteins:
        low, high = self.lengths
        if not 8 <= low <= high:
            raise ValueError(f"{[low, high]} is not a range of lengths, which are at least 8")
        return self


def proteins(values: Mapping[str, Any]) -> Corpus:
    """Return sequences under keys ``family:accession``; a family is called by the accession of its first member.

    A family has a random ancestor, whose length all members have. The corpus does not contain the ancestor, and no
    sequence occurs twice, within a split or in two.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Proteins`).
    """
    parameters = build(Proteins, values, where="parameters of the generated task 'proteins'")
    numbers = itertools.count(1)
    seen: set[str] = set()

    def segments(split: str) -> Iterator[Segment]:
        rng = random.Random(f"proteins {split} {parameters.seed}")
        own = parameters.splits[split]
        for _ in range(own.families):
            ancestor = "".join(rng.choices(_LETTERS, _WEIGHTS, k=rng.randint(*parameters.lengths)))
            accessions = [f"G{next(numbers):05}" for _ in range(own.members)]
            seen.add(ancestor)
            for accession in accessions:
                while (sequence := _changed(ancestor, parameters.changed, rng)) in seen:
                    pass
                seen.add(sequence)
                name = f"Generated protein of family {accessions[0]}"
                yield Segment((sequence, name), key=f"{accessions[0]}:{accession}")

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(segments(split)) for split in parameters.splits}


def _changed(ancestor: str, share: float, rng: random.Random) -> str:
    """Redraw each letter independently with the probability ``share``; the new letter can equal the old one."""
    return "".join(rng.choices(_LETTERS, _WEIGHTS)[0] if rng.random() < share else letter for letter in ancestor)
