"""Generated sequences: symbols to repeat, facts to recall, and pictures and proteins in the formats of fetched ones.

The pictures and the proteins serve to test code in seconds and without a download, not to train models for results.
"""

from __future__ import annotations

import heapq
import io
import itertools
import math
import random
from collections.abc import Collection, Iterator
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from shared.config import Strict
from shared.data.generated.words import ASCENDING, Generated, Texts, Wanted, distinct_texts, namers, syllables
from shared.data.homology import AMINO_ACIDS, ANOMALOUS
from shared.data.splits import Accompanied, Corpus, Segment

FILE = "copy.json"
_STEMS = syllables("bdfghklmnprstvwz", "aeiou", "lmnrv")
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


class Recall(Texts):
    """Parameters of `recall`.

    Attributes:
        keys: number of keys; a key has one value at a time.
        values: number of values of a key; there are ``keys * values`` facts.
        fillers: number of meaningless word types.
        distances: least and largest distance in words from a fact to its repetition, at least 3: one word is between
            it and its question.
        filler_share: share of fillers at the places where a key could be set.
    """

    keys: int = Field(gt=0)
    values: int = Field(gt=1)
    fillers: int = Field(gt=0)
    distances: Annotated[tuple[Annotated[int, Field(ge=3)], int], ASCENDING]
    filler_share: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _possible(self) -> Recall:
        if (names := self.keys + self.values + self.fillers) > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} keys, values and fillers can be named, not {names}")
        if self.shortest <= (high := self.distances[1]):
            raise ValueError(
                f"the longest distance must fit: the shortest text has {self.shortest} words, not {high + 1} or more"
            )
        return self


def recall(parameters: Recall) -> Corpus:
    """Return running text in which facts are repeated at known distances, with the positions of both mentions.

    A fact is one word with a key and its value, such as ``bolo:mira``. Later a question, ``bolo?``, is followed by the
    same word again. Then the key is free and can get another value. The value of a new fact is unpredictable. The value
    after a question is certain for a model that remembers the fact, and otherwise as unpredictable as before.

    The two languages are the text and its recalls, ``repetition-mention`` pairs of word positions from 0, ascending.
    Lengths are uniform inside a bucket. No text occurs twice, within a split or in two.
    """
    (name,) = namers("recall", parameters.seed, _STEMS)  # whose last letters show human readers what a name is of
    keys, values, fillers = name(parameters.keys, "o"), name(parameters.values, "a"), name(parameters.fillers, "u")
    nearest, farthest = map(math.log, parameters.distances)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        """Write a text and its recalls.

        At each position a due question has priority. Otherwise, with probability 1 - ``filler_share``, a random free
        key is set to a uniform value, with a log-uniform distance (rounded) to its repetition. Otherwise, or if no key
        is free, the word is a uniform filler. A question that is due during another question and its answer follows
        them, so it is at most ``2 * (keys - 1)`` words late. A fact whose repetition would be after the end of the text
        has no question.
        """
        length = rng.randint(wanted.low, wanted.high)
        words, links, free = list[str](), list[str](), list(keys)
        waiting: list[tuple[int, int, str]] = []  # heap of (position of the question, position of the fact, key)
        while (place := len(words)) < length:
            if waiting and waiting[0][0] <= place < length - 1:
                _, earlier, key = heapq.heappop(waiting)
                words += [f"{key}?", words[earlier]]
                links.append(f"{place + 1}-{earlier}")
                free.append(key)
            elif free and rng.random() >= parameters.filler_share:
                key = free.pop(rng.randrange(len(free)))
                words.append(f"{key}:{rng.choice(values)}")
                distance = round(math.exp(rng.uniform(nearest, farthest)))
                heapq.heappush(waiting, (place + distance - 1, place, key))
            else:
                words.append(rng.choice(fillers))
        return Segment((" ".join(words), " ".join(links))), " ".join(words)

    return distinct_texts("recall", parameters, draw)


class Pictures(Generated[Annotated[int, Field(gt=0, le=10_000)]]):
    """Parameters of `pictures`, whose splits are numbers of them.

    Attributes:
        side: height and width in pixels.
        strokes: number of strokes per picture; later ones cover earlier ones.
    """

    side: int = Field(ge=8, le=256)
    strokes: PositiveInt


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


class Proteins(Generated[Families]):
    """Parameters of `proteins`; the families of a split are in no other.

    Attributes:
        lengths: least and largest length of proteins in amino acids; a family has one length.
        changed: probability that a letter of the ancestor is redrawn for a member of a family.
    """

    lengths: Annotated[tuple[Annotated[int, Field(ge=8)], int], ASCENDING]
    changed: float = Field(ge=0.05, le=1)


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
