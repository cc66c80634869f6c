"""The generated task `agreement`: every target word agrees in one feature with each of several source words at once.

Every source word has as many binary features as a target word has. A pronoun stands for the word at a fixed distance
behind it, which may be a pronoun itself, so a chain of pronouns takes as many hops as it has members. All of a target
word's features come from different places, so what has been translated already says little of the next target word.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.generated.buckets import Buckets
from shared.data.splits import Corpus, Segment

_STEMS = [a + b + c for a, b, c in itertools.product("bdfklmnprst", "aeiou", "lmnrstv")]
_NAMES = [a + b + c + "e" + d for a, b, c, d in itertools.product("ghjvwz", "aiou", "dlmnr", "lnst")]


class Agreement(Strict):
    """Parameters of `agreement`.

    Attributes:
        seed: seed of the words and of every split (each split has its own generator).
        places: for each feature how many words behind (or, negative, before) its own place a target word reads it.
        distances: of each pronoun, how many words behind it stands the word that it means.
        pronouns: the probability that a word is a pronoun, where every pronoun has a word to mean.
        splits: split name to its sentences. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    places: tuple[int, ...] = Field(min_length=1, max_length=7)
    distances: tuple[Annotated[int, Field(gt=0)], ...] = Field(min_length=1, max_length=9)
    pronouns: float = Field(ge=0, lt=1)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Agreement:
        for name, numbers in (("places", self.places), ("distances", self.distances)):
            if len(set(numbers)) != len(numbers):
                raise ValueError(f"'{name}' has a number twice")
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        wanted = sum(len(split.buckets) * split.per_bucket for split in self.splits.values())
        if 2 ** (len(self.places) * shortest) < 4 * wanted:
            raise ValueError(f"{2 ** len(self.places)} words make too few distinct sentences of length {shortest}")
        return self


def vocabulary(parameters: Agreement) -> tuple[list[str], list[str], list[str]]:
    """Source words in ``-o``, pronouns in ``-i``, and target words; feature f of word w is bit f of the number w."""
    rng = random.Random(f"agreement lexicon {parameters.seed}")
    stems, names = list(_STEMS), list(_NAMES)
    rng.shuffle(stems)
    rng.shuffle(names)
    count = 2 ** len(parameters.places)
    pronouns = stems[count : count + len(parameters.distances)]
    return [stem + "o" for stem in stems[:count]], [stem + "i" for stem in pronouns], names[:count]


def meant(sentence: Sequence[int], distances: Sequence[int], words: int) -> list[int]:
    """Every word's number, a pronoun's (``words`` and above) that of the word it means, by one pass from the right."""
    meanings = list(sentence)
    for place in range(len(sentence) - 1, -1, -1):
        if sentence[place] >= words:
            meanings[place] = meanings[place + distances[sentence[place] - words]]
    return meanings


def agreeing(meanings: Sequence[int], places: Sequence[int]) -> list[int]:
    """The target words' numbers: feature f of the t-th is that of the word at t + places[f], or 0 if there is none."""
    length = len(meanings)
    return [
        sum(meanings[t + place] & 1 << f for f, place in enumerate(places) if 0 <= t + place < length)
        for t in range(length)
    ]


def agreement(values: Mapping[str, Any]) -> Corpus:
    """Generate sentences and as long translations, whose every word agrees with the words at several places.

    Lengths are uniform inside a bucket. Words are independent and uniform. Each is a pronoun instead with probability
    ``pronouns``, every pronoun equally often, but the last words, as many as the largest distance. No source sentence
    occurs twice, within a split or in two.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Agreement`).
    """
    parameters = build(Agreement, values, where="parameters of the generated task 'agreement'")
    words, pronouns, names = vocabulary(parameters)
    kinds, reach, spelled = len(pronouns), max(parameters.distances), words + pronouns
    seen: set[tuple[int, ...]] = set()

    def sentences(split: str) -> Iterator[Segment]:
        rng = random.Random(f"agreement {split} {parameters.seed}")
        for low, high in parameters.splits[split].buckets:
            todo = parameters.splits[split].per_bucket
            while todo:
                sentence = [rng.randrange(len(words)) for _ in range(rng.randint(low, high))]
                for place in range(len(sentence) - reach):
                    if rng.random() < parameters.pronouns:
                        sentence[place] = len(words) + rng.randrange(kinds)
                if tuple(sentence) in seen:
                    continue
                seen.add(tuple(sentence))
                todo -= 1
                target = agreeing(meant(sentence, parameters.distances, len(words)), parameters.places)
                sides = ([spelled[word] for word in sentence], [names[word] for word in target])
                yield Segment((" ".join(sides[0]), " ".join(sides[1])))

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(sentences(split)) for split in parameters.splits}
