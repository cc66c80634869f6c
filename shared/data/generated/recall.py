"""The generated task `recall`: running text in which facts are repeated at known distances.

A fact is one word with a key and its value, such as ``bolo:mira``. Later a question, ``bolo?``, is followed by the same
word again. Then the key is free and can get another value. The value of a new fact is unpredictable. The value after a
question is certain for a model that remembers the fact, and otherwise as unpredictable as before.
"""

from __future__ import annotations

import heapq
import math
import random
from typing import NamedTuple

from pydantic import Field, model_validator

from shared.data.generated.words import Texts, Wanted, distinct_texts, namer, syllables
from shared.data.splits import Corpus, Segment

_SHORTEST = 3  # least distance: one word is between a fact and its question
_STEMS = syllables("bdfghklmnprstvwz", "aeiou", "lmnrv")


class Recall(Texts):
    """Parameters of `recall`.

    Attributes:
        keys: number of keys; a key has one value at a time.
        values: number of values of a key; there are ``keys * values`` facts.
        fillers: number of meaningless word types.
        distances: least and largest distance in words from a fact to its repetition.
        filler_share: share of fillers at the places where a key could be set.
    """

    keys: int = Field(gt=0)
    values: int = Field(gt=1)
    fillers: int = Field(gt=0)
    distances: tuple[int, int]
    filler_share: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _possible(self) -> Recall:
        if (names := self.keys + self.values + self.fillers) > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} keys, values and fillers can be named, not {names}")
        low, high = self.distances
        if not _SHORTEST <= low <= high:
            raise ValueError(f"{[low, high]} is not a range of distances, which are at least {_SHORTEST}")
        if self.shortest <= high:
            raise ValueError(
                f"the longest distance must fit: the shortest text has {self.shortest} words, not {high + 1} or more"
            )
        return self


class Words(NamedTuple):
    """The parts of the words of `recall`: keys and values, as in ``key?`` and ``key:value``, and fillers."""

    keys: list[str]
    values: list[str]
    fillers: list[str]


def vocabulary(parameters: Recall) -> Words:
    """Return made-up names, whose last letter shows their role: ``-o`` a key, ``-a`` a value, ``-u`` a filler."""
    name = namer(_STEMS, "recall", parameters.seed)
    return Words(name(parameters.keys, "o"), name(parameters.values, "a"), name(parameters.fillers, "u"))


def recall(parameters: Recall) -> Corpus:
    """Return texts, and for each the positions of the repeated facts with the positions of their first mentions.

    The two languages are the text and its recalls, ``repetition-mention`` pairs of word positions from 0, ascending.
    Lengths are uniform inside a bucket. No text occurs twice, within a split or in two.
    """
    words = vocabulary(parameters)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        text, links = _write(rng.randint(wanted.low, wanted.high), parameters, words, rng)
        return Segment((text, links)), text

    return distinct_texts("recall", parameters, draw)


def _write(length: int, parameters: Recall, words: Words, rng: random.Random) -> tuple[str, str]:
    """Return a text of ``length`` words and its recalls.

    At each position a due question has priority. Otherwise, with probability 1 - ``filler_share``, a random free key is
    set to a uniform value, with a log-uniform distance (rounded) to its repetition. Otherwise, or if no key is free,
    the word is a uniform filler. A question that is due during another question and its answer follows them, so it is
    at most ``2 * (keys - 1)`` words late. A fact whose repetition would be after the end of the text has no question.
    """
    nearest, farthest = map(math.log, parameters.distances)
    text: list[str] = []
    links: list[str] = []
    free = list(words.keys)
    waiting: list[tuple[int, int, str]] = []  # heap of (position of the question, position of the fact, key)
    while (place := len(text)) < length:
        if waiting and waiting[0][0] <= place < length - 1:
            _, earlier, key = heapq.heappop(waiting)
            text += [f"{key}?", text[earlier]]
            links.append(f"{place + 1}-{earlier}")
            free.append(key)
        elif free and rng.random() >= parameters.filler_share:
            key = free.pop(rng.randrange(len(free)))
            text.append(f"{key}:{rng.choice(words.values)}")
            distance = round(math.exp(rng.uniform(nearest, farthest)))
            heapq.heappush(waiting, (place + distance - 1, place, key))
        else:
            text.append(rng.choice(words.fillers))
    return " ".join(text), " ".join(links)
