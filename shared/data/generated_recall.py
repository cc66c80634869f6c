"""The generated task `recall`: running text in which words repeat what was said of a key at known distances before.

``set key value`` says which value a key has in a text, and ``get key value``, later in the same text, repeats it.
Between them are fillers and other keys. The value after ``set`` cannot be guessed, that after ``get`` is certain for
a reader that remembers so far back, and as hard to guess as the first for one that does not.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from shared.config import Strict, build
from shared.data.buckets import Buckets
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

SET, GET = "set", "get"
_BLOCK = 3  # words of a saying: what is said, key, value
_TRIES = 200  # draws for a place that is free, and for a text
_STEMS = ["".join(letters) for letters in itertools.product("bdfghklmnprstvwz", "aeiou", "lmnrv")]


def _distances(numbers: tuple[int, int]) -> tuple[int, int]:
    if not _BLOCK <= numbers[0] <= numbers[1]:
        raise ValueError(f"{list(numbers)} is not a range of distances, which are at least {_BLOCK}")
    return numbers


_Distances = Annotated[tuple[int, int], AfterValidator(_distances)]


class Recall(Strict):
    """Parameters of `recall`.

    Attributes:
        seed: of the words and of every split (each split draws from a generator of its own).
        keys: word types that have a value; in a text each at most once.
        values: word types that keys have.
        fillers: word types that say nothing.
        distances: ranges, ascending, of how many words after a value it is repeated; both ends included.
        per_range: how many values of a text are repeated at a distance of each range.
        splits: split name to its texts. Splits named earlier do not depend on later ones.
    """

    seed: int = Field(ge=0)
    keys: int = Field(gt=0)
    values: int = Field(gt=1)
    fillers: int = Field(gt=0)
    distances: tuple[_Distances, ...] = Field(min_length=1)
    per_range: int = Field(gt=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Recall:
        if (types := self.keys + self.values + self.fillers) > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {types}")
        if any(before[1] >= after[0] for before, after in pairwise(self.distances)):
            raise ValueError("the ranges of 'distances' must ascend and not overlap")
        facts = len(self.distances) * self.per_range
        if facts > self.keys:
            raise ValueError(f"a text has {facts} recalls, so at least as many keys are needed")
        room = max(self.distances[-1][1] + _BLOCK, 4 * _BLOCK * facts)
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        if shortest < room:
            raise ValueError(
                f"recalls must not fill more than half of a text, and the longest distance must fit: "
                f"texts of {room} words are needed, but the shortest has {shortest}"
            )
        return self


class Words(NamedTuple):
    """The vocabulary of `recall`, beside ``set`` and ``get``, by the part that a word plays."""

    keys: list[str]
    values: list[str]
    fillers: list[str]


def vocabulary(parameters: Recall) -> Words:
    """Made-up words; the last letter shows the part for the reader: ``-o`` a key, ``-a`` a value, ``-u`` a filler."""
    stems = list(_STEMS)
    random.Random(f"recall lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> list[str]:
        return [stem + ending for stem in itertools.islice(names, count)]

    return Words(draw(parameters.keys, "o"), draw(parameters.values, "a"), draw(parameters.fillers, "u"))


def recall(values: Mapping[str, Any]) -> Corpus:
    """Texts, and for each the places of the values that are repeated, with those of what they repeat.

    The two languages are the text and its recalls, ``place-earlier`` for each, positions of words from 0, ascending.
    Values are drawn uniformly and independently for each text, distances uniformly from their range, fillers
    uniformly. Lengths are uniform inside a bucket. No text occurs twice, within a split or in two.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Recall`), or a text has no room for its recalls.
    """
    parameters = build(Recall, values, where="parameters of the generated task 'recall'")
    words = vocabulary(parameters)
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"recall {split} {parameters.seed}")
        for low, high in parameters.splits[split].buckets:
            for _ in range(parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    places = _places(rng.randint(low, high), parameters, rng)
                    text, links = _write(places, words, rng) if places else ("", "")
                    if text and text not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the generated task 'recall' finds no room for the recalls of texts of {low} to {high} words "
                        f"of the split '{split}', or no new one; make texts longer or 'per_range' smaller."
                    )
                seen.add(text)
                yield Segment((text, links))

    # Lists, because which text is a repetition depends on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


class _Places(NamedTuple):
    """A text of ``length`` words, and where in it a value is set and how many words later it is repeated."""

    length: int
    facts: list[tuple[int, int]]


def _places(length: int, parameters: Recall, rng: random.Random) -> _Places | None:
    """Random places for all facts, or None if those drawn first leave no room for others."""
    drawn = [rng.randint(*bounds) for bounds in parameters.distances for _ in range(parameters.per_range)]
    taken = bytearray(length)
    facts = []
    for distance in sorted(drawn, reverse=True):  # the longest fit into the fewest places
        for _ in range(_TRIES):
            first = rng.randrange(length - distance - _BLOCK + 1)
            blocks = [slice(begin, begin + _BLOCK) for begin in (first, first + distance)]
            if not any(any(taken[block]) for block in blocks):
                break
        else:
            return None
        for block in blocks:
            taken[block] = b"\x01" * _BLOCK
        facts.append((first, distance))
    return _Places(length, facts)


def _write(places: _Places, words: Words, rng: random.Random) -> tuple[str, str]:
    """The text and its recalls."""
    text = [rng.choice(words.fillers) for _ in range(places.length)]
    links = []
    for (first, distance), key in zip(places.facts, rng.sample(words.keys, len(places.facts)), strict=True):
        value = rng.choice(words.values)
        text[first : first + _BLOCK] = SET, key, value
        text[first + distance : first + distance + _BLOCK] = GET, key, value
        links.append((first + distance + 2, first + 2))
    return " ".join(text), " ".join(f"{place}-{earlier}" for place, earlier in sorted(links))
