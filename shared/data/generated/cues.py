"""The generated tasks `tally` and `documents`, whose texts have a class that some of their words decide.

In `tally` these are cues, each a key word with a value word, and the values of the relevant keys are the class. A key
or a value is a meaning with several word forms, of which some are frequent and some are rare. Between a key and its
value stand fillers alone, which mean nothing. In `documents` one sentence decides, by the order of two words.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field, model_validator

from shared.data.generated.words import Numbers, Texts, Wanted, distinct_texts, namers, syllables
from shared.data.splits import Corpus, Segment

_STEMS = syllables("bdfghklmnprstvwz", "aeiou", "lmnrstv") + syllables("bdfk", "aeiou", "lmn", "aeiou", "rst")
END = "."
"""Of a sentence of `documents`."""
_LEAST = 4  # words of such a sentence: its topic, two values, and its end

Meaning = Sequence[str]
"""The word forms of a key or of a value, the most frequent first."""


class Tally(Texts):
    """Parameters of `tally`; each relevant key has an answer of its own.

    Attributes:
        keys: number of relevant keys.
        decoys: number of irrelevant keys.
        values: number of values; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        votes: least and largest number of cues of a relevant key in a text.
        distractors: least and largest number of decoys with a value in a text; a decoy can occur repeatedly.
    """

    keys: int = Field(gt=0)
    decoys: int = Field(ge=0)
    values: int = Field(gt=1)
    key_forms: int = Field(gt=0)
    value_forms: int = Field(gt=0)
    fillers: int = Field(gt=0)
    gap: int = Field(ge=0)
    votes: Numbers
    distractors: Numbers

    @model_validator(mode="after")
    def _possible(self) -> Tally:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        room = 2 * (self.keys * self.votes[1] + self.distractors[1])  # of all cues; what stands between them is spare
        if types > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        if self.votes[0] == 0:
            raise ValueError("'votes' must be at least 1: a key without a cue has no answer")
        if self.shortest < room:
            raise ValueError(f"keys and values can take {room} words, but the shortest text has {self.shortest}")
        return self


class Words(NamedTuple):
    """The vocabulary by the role of a word, which its last letter shows to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """

    keys: Sequence[Meaning]
    decoys: Sequence[Meaning]
    values: Sequence[Meaning]
    fillers: list[str]


def vocabulary(parameters: Tally) -> Words:
    """Return made-up words."""
    (name,) = namers("tally", parameters.seed, _STEMS)
    return Words(
        keys=[name(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[name(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[name(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=name(parameters.fillers, "u"),
    )


def scattered(
    blocks: Sequence[tuple[Sequence[str], bool]], length: int, fillers: Sequence[str], rng: random.Random
) -> tuple[list[str], list[int]]:
    """A text of ``length`` words with the blocks in their order at random places, and fillers elsewhere.

    Args:
        blocks: words that stand beside each other, "" for a filler; and whether the first and the last are positions
            that decide the class.
        length: of the text, words.
        fillers: to choose from.
        rng: chooses.

    Returns:
        the words, and the ascending 0-based positions of the first and the last of each block that decides.
    """
    slots = len(blocks) + length - sum(len(block) for block, _ in blocks)  # each slot has a block or a filler
    places = set(rng.sample(range(slots), len(blocks)))
    remaining = iter(blocks)
    text: list[str] = []
    positions: list[int] = []
    for slot in range(slots):
        block, relevant = next(remaining) if slot in places else ([""], False)
        if relevant:
            positions += len(text), len(text) + len(block) - 1
        text += block
    return [word or rng.choice(fillers) for word in text], positions


def form(meaning: Meaning, rng: random.Random) -> str:
    """Draw one of the word forms by Zipf's law: with a probability proportional to 1/rank."""
    return rng.choices(meaning, [1 / rank for rank in range(1, len(meaning) + 1)])[0]


def tally(parameters: Tally) -> Corpus:
    """Texts whose class is what most of their scattered cues say, for each of a few questions.

    A cue is a key word followed by a value word. Every relevant key is a question, and its cues vote: the answer is the
    value that follows it more often than any other does. Other keys carry the same values and count for nothing. No
    single cue decides, so that cues have to be put together.

    How many cues a key has is uniform inside ``votes``, and what they say is uniform among all choices of which the
    answer has more than any other value. Between a key and its value stand at most ``gap`` words, all fillers.

    Of every text there are the words, its class, and the positions of the words that decide it. The label has the
    answers in the order of the keys, each by its most frequent form, joined with ``+``. Lengths are uniform inside a
    bucket. The numbers of texts of two classes in a split differ by at most 1. No text occurs twice, within a split or
    in two.
    """
    words = vocabulary(parameters)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        length = rng.randint(wanted.low, wanted.high)
        cues = [
            (key, words.values[value], True)
            for key, answer in zip(words.keys, wanted.label, strict=True)
            for value in _votes(answer, parameters, rng)
        ]
        for _ in range(rng.randint(*parameters.distractors)):
            cues.append((rng.choice(words.decoys), rng.choice(words.values), False))
        rng.shuffle(cues)
        spare = length - 2 * len(cues)
        blocks = []
        for key, value, relevant in cues:
            between = rng.randint(0, min(parameters.gap, spare))
            spare -= between
            blocks.append(([form(key, rng), *[""] * between, form(value, rng)], relevant))
        text, positions = scattered(blocks, length, words.fillers, rng)
        named = "+".join(words.values[value][0] for value in wanted.label)
        return Segment((" ".join(text), named, " ".join(map(str, positions)))), " ".join(text)

    labels = [*itertools.product(range(parameters.values), repeat=parameters.keys)]
    return distinct_texts("tally", parameters, draw, labels)


def _votes(answer: int, parameters: Tally, rng: random.Random) -> list[int]:
    """Return what the cues of one key say: the answer more often than any other value."""
    count = rng.randint(*parameters.votes)
    while True:
        votes = [rng.randrange(parameters.values) for _ in range(count)]
        counts = Counter(votes)
        most = counts.pop(answer, 0)
        if most > max(counts.values(), default=0):
            return votes


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
        if types > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {types}")
        if self.sentences[0] == 0:
            raise ValueError("'sentences' must be at least 1: a document without one has no class")
        if self.shortest < (room := _LEAST * self.sentences[1]):
            raise ValueError(f"sentences can take {room} words, but the shortest text has {self.shortest}")
        return self


def document_words(parameters: Documents) -> Words:
    """Return made-up words: the one key is the topic of the sentence that decides, the one decoy that of all others."""
    (name,) = namers("documents", parameters.seed, _STEMS)
    values = [name(parameters.value_forms, "") for _ in range(parameters.values)]
    return Words([name(parameters.keys, "o")], [name(parameters.topics, "a")], values, name(parameters.fillers, "u"))


def documents(parameters: Documents) -> Corpus:
    """Documents whose class is the value that stands first in the one sentence that has a key.

    Every sentence has a topic and the forms of two different values at random places among fillers, and ends with
    :data:`END`. So neither the words of a document nor those of its deciding sentence determine the class: the order
    of two words does.

    The languages are the text, the class (the first form of its value), and the positions of the words of the deciding
    sentence. Lengths are uniform inside a bucket, numbers of sentences uniform inside ``sentences``. The numbers of
    documents of two classes in a split differ by at most 1. No text occurs twice, within a split or in two.
    """
    words, classes = document_words(parameters), range(parameters.values)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        value, count = wanted.label, rng.randint(*parameters.sentences)
        length = rng.randint(wanted.low, wanted.high)
        cuts = sorted(rng.randint(0, length - _LEAST * count) for _ in range(count - 1))
        spare = [end - begin for begin, end in itertools.pairwise([0, *cuts, length - _LEAST * count])]
        decides, text = rng.randrange(count), list[str]()
        for number, fillers in enumerate(spare):
            begin = len(text)
            (topics,), first = (words.keys, value) if number == decides else (words.decoys, rng.choice(classes))
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
    text, _ = scattered([([word], False) for word in told], fillers + 3, words.fillers, rng)
    return [*text, END]
