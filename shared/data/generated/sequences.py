"""Generated sequences: symbols to repeat, and pictures and proteins in the file formats of fetched ones.

The pictures and the proteins serve to test code in seconds and without a download, not to train models for results.
"""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Collection, Iterator
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from shared.config import Strict
from shared.data.homology import AMINO_ACIDS, ANOMALOUS
from shared.data.splits import Accompanied, Corpus, Segment, SplitName

FILE = "copy.json"
_PEN = 3  # side of the square brush of a stroke
_FAINTEST = 128
_LETTERS = AMINO_ACIDS + ANOMALOUS
# Frequencies decrease from letter to letter, so that unigram statistics help; the anomalous letters are rare.
_WEIGHTS = (*range(100, 0, -5), *[1] * len(ANOMALOUS))


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


def copy(parameters: Copy) -> Accompanied:
    """Random sequences of symbols, which a model must repeat.

    No sequence is stored: the corpus has no splits, and the file :data:`FILE`, whose parameters suffice to draw
    sequences. Each is drawn from its number when it is needed, so their number is unlimited.
    """
    return Accompanied({}, {FILE: parameters.model_dump_json() + "\n"})


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


def pictures(parameters: Pictures) -> Accompanied:
    """Small grey pictures of a few strokes on a black background.

    The corpus has one file ``<split>.images.npy`` per split: (N, side, side, 1) uint8. No picture occurs twice, within
    a split or in two.
    """
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


def proteins(parameters: Proteins) -> Corpus:
    """Random sequences of amino acids in families, under keys ``family:accession``.

    A family is called by the accession of its first member. It has a random ancestor, whose length all members have.
    The corpus does not contain the ancestor, and no sequence occurs twice, within a split or in two.
    """
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
