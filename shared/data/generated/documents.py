"""The generated task `documents`: documents in sentences, one of which decides the class by the order of two words."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

from pydantic import Field, model_validator

from shared.data.generated.cues import STEMS
from shared.data.generated.words import Numbers, Texts, Wanted, distinct_texts, namer
from shared.data.splits import Corpus, Segment

END = "."
_LEAST = 4  # words of a sentence: its topic, two values, and its end


class Documents(Texts):
    """Parameters of `documents`.

    Attributes:
        keys: word types of the topic of the sentence that decides.
        topics: word types of the topics of all other sentences.
        values: number of values, which are the classes.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        sentences: least and largest number of sentences of a document.
    """

    keys: int = Field(gt=0)
    topics: int = Field(gt=0)
    values: int = Field(gt=1)
    value_forms: int = Field(gt=0)
    fillers: int = Field(gt=0)
    sentences: Numbers

    @model_validator(mode="after")
    def _possible(self) -> Documents:
        types = self.keys + self.topics + self.values * self.value_forms + self.fillers
        if types > len(STEMS):
            raise ValueError(f"at most {len(STEMS)} words can be named, not {types}")
        if self.sentences[0] == 0:
            raise ValueError("'sentences' must be at least 1: a document without one has no class")
        if self.shortest < (room := _LEAST * self.sentences[1]):
            raise ValueError(f"sentences can take {room} words, but the shortest text has {self.shortest}")
        return self


class Words(NamedTuple):
    """The vocabulary by the role of a word, beside the end of a sentence."""

    keys: list[str]
    topics: list[str]
    values: list[list[str]]
    fillers: list[str]


def vocabulary(parameters: Documents) -> Words:
    """Return made-up words; keys end in ``-o``, other topics in ``-a``, fillers in ``-u``, values in a consonant."""
    name = namer(STEMS, "documents", parameters.seed)
    values = [name(parameters.value_forms, "") for _ in range(parameters.values)]
    return Words(name(parameters.keys, "o"), name(parameters.topics, "a"), values, name(parameters.fillers, "u"))


def documents(parameters: Documents) -> Corpus:
    """Documents whose class is the value that stands first in the one sentence that has a key.

    Every sentence has a topic and the forms of two different values at random places among fillers, and ends with
    :data:`END`. So neither the words of a document nor those of its deciding sentence determine the class: the order
    of two words does.

    The languages are the text, the class (the first form of its value), and the positions of the words of the deciding
    sentence. Lengths are uniform inside a bucket, numbers of sentences uniform inside ``sentences``. The numbers of
    documents of two classes in a split differ by at most 1. No text occurs twice, within a split or in two.
    """
    words, classes = vocabulary(parameters), range(parameters.values)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        value, count = wanted.label, rng.randint(*parameters.sentences)
        length = rng.randint(wanted.low, wanted.high)
        cuts = sorted(rng.randint(0, length - _LEAST * count) for _ in range(count - 1))
        spare = [end - begin for begin, end in itertools.pairwise([0, *cuts, length - _LEAST * count])]
        decides, text = rng.randrange(count), list[str]()
        for number, fillers in enumerate(spare):
            begin = len(text)
            topics, first = (words.keys, value) if number == decides else (words.topics, rng.choice(classes))
            text += _sentence(rng.choice(topics), first, fillers, words, rng)
            if number == decides:
                positions = range(begin, len(text))
        return Segment((" ".join(text), words.values[value][0], " ".join(map(str, positions)))), " ".join(text)

    return distinct_texts("documents", parameters, draw, classes)


def _sentence(topic: str, first: int, fillers: int, words: Words, rng: random.Random) -> list[str]:
    """A topic, a form of the value ``first`` and after it one of another value, among so many fillers, and the end."""
    second = rng.choice([value for value in range(len(words.values)) if value != first])
    told = [rng.choice(words.values[first]), rng.choice(words.values[second])]
    told.insert(rng.randrange(3), topic)
    places = set(rng.sample(range(fillers + 3), 3))
    remaining = iter(told)
    return [next(remaining) if i in places else rng.choice(words.fillers) for i in range(fillers + 3)] + [END]
