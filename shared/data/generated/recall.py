"""The generated task `recall`: running text in which facts are repeated at known distances from where they were set.

A fact is one word that names a key and its value, as ``bolo:mira``. Later a question, ``bolo?``, is followed by the
same word again. Then the key is free and is set anew. The value of a fact that is set cannot be guessed; that after a
question is certain for a reader that remembers so far back, and as hard to guess as the first for one that does not.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.generated.buckets import Buckets
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

_SHORTEST = 3  # a word comes between a fact and its question
_TRIES = 200  # draws for a text that has not been drawn before
_STEMS = ["".join(letters) for letters in itertools.product("bdfghklmnprstvwz", "aeiou", "lmnrv")]


class Recall(Strict):
    """Parameters of `recall`.

    Attributes:
        seed: of the words and of every split (each split draws from a generator of its own).
        keys: how many have a value, each one value at a time.
        values: how many a key can have; there are ``keys * values`` facts.
        fillers: word types that say nothing.
        distances: shortest and longest, in words from a fact to its repetition.
        filler_share: of the places where a key could be set, those that a filler takes.
        splits: split name to its texts. Splits named earlier do not depend on later ones.
    """

    seed: int = Field(ge=0)
    keys: int = Field(gt=0)
    values: int = Field(gt=1)
    fillers: int = Field(gt=0)
    distances: tuple[int, int]
    filler_share: float = Field(ge=0, lt=1)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Recall:
        if (names := self.keys + self.values + self.fillers) > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} keys, values and fillers can be named, not {names}")
        low, high = self.distances
        if not _SHORTEST <= low <= high:
            raise ValueError(f"{[low, high]} is not a range of distances, which are at least {_SHORTEST}")
        shortest = min(bounds[0] for split in self.splits.values() for bounds in split.buckets)
        if shortest <= high:
            raise ValueError(
                f"the longest distance must fit: texts of {high + 1} words are needed, but the shortest has {shortest}"
            )
        return self


class Words(NamedTuple):
    """What the words of `recall` are made of: keys and values, as ``key?`` and ``key:value``, and the fillers."""

    keys: list[str]
    values: list[str]
    fillers: list[str]


def vocabulary(parameters: Recall) -> Words:
    """Made-up names; the last letter shows the part for the reader: ``-o`` a key, ``-a`` a value, ``-u`` a filler."""
    stems = list(_STEMS)
    random.Random(f"recall lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> list[str]:
        return [stem + ending for stem in itertools.islice(names, count)]

    return Words(draw(parameters.keys, "o"), draw(parameters.values, "a"), draw(parameters.fillers, "u"))


def recall(values: Mapping[str, Any]) -> Corpus:
    """Texts, and for each the places of the facts that are repeated, with those of what they repeat.

    The two languages are the text and its recalls, ``place-earlier`` for each, positions of words from 0, ascending.
    Lengths are uniform inside a bucket. No text occurs twice, within a split or in two.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Recall`), or allow too few different texts.
    """
    parameters = build(Recall, values, where="parameters of the generated task 'recall'")
    words = vocabulary(parameters)
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"recall {split} {parameters.seed}")
        for low, high in parameters.splits[split].buckets:
            for _ in range(parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    text, links = _write(rng.randint(low, high), parameters, words, rng)
                    if text not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the generated task 'recall' finds no new text of {low} to {high} words for the split "
                        f"'{split}'; make 'per_bucket' smaller, or texts longer."
                    )
                seen.add(text)
                yield Segment((text, links))

    # Lists, because which text is a repetition depends on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


def _write(length: int, parameters: Recall, words: Words, rng: random.Random) -> tuple[str, str]:
    """A text of ``length`` words, and its recalls.

    At each place a question that is due comes first. Else, but for ``filler_share``, a random free key is set to a
    uniform value, with a log-uniform distance (rounded) to its repetition; else, or where no key is free, there is a
    uniform filler. A question that falls due while another is asked and answered comes after that, so at most
    ``2 * (keys - 1)`` words late. A fact whose repetition would fall beyond the end is never asked for.
    """
    nearest, farthest = map(math.log, parameters.distances)
    text: list[str] = []
    links: list[str] = []
    free = list(words.keys)
    waiting: list[tuple[int, int, str]] = []  # heap of: place of the question, place of the fact, key
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
