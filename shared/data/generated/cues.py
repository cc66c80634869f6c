"""The generated tasks `evidence`, `tally` and `documents`, whose texts have a class that some of their words decide.

In `evidence` and `tally` these are cues, each a key word with a value word, and the values of the relevant keys are the
class. A key or a value is a meaning with several word forms, of which some are frequent and some are rare. Between a
key and its value stand fillers alone, which mean nothing. In `documents` one sentence decides, by the order of two
words.
"""

from __future__ import annotations

import itertools
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field, model_validator

from shared.data.generated.words import Numbers, Texts, Wanted, distinct_texts, namer, syllables
from shared.data.splits import Corpus, Segment

_STEMS = syllables("bdfghklmnprstvwz", "aeiou", "lmnrstv") + syllables("bdfk", "aeiou", "lmn", "aeiou", "rst")
END = "."
"""Of a sentence of `documents`."""
_LEAST = 4  # words of such a sentence: its topic, two values, and its end

Meaning = Sequence[str]
"""The word forms of a key or of a value, the most frequent first."""
Label = tuple[int, ...]
"""The number of the value of each relevant key."""
Drawn = tuple[list[str], list[int]]
"""The words of a text, and the ascending 0-based positions of its relevant keys and of their values."""


class Cues(Texts):
    """Parameters of both tasks.

    Attributes:
        keys: number of relevant keys.
        decoys: number of irrelevant keys.
        values: number of values; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        distractors: least and largest number of decoys with a value in a text; a decoy can occur repeatedly.
    """

    keys: int = Field(gt=0)
    decoys: int = Field(ge=0)
    values: int = Field(gt=1)
    key_forms: int = Field(gt=0)
    value_forms: int = Field(gt=0)
    fillers: int = Field(gt=0)
    gap: int = Field(ge=0)
    distractors: Numbers

    @property
    @abstractmethod
    def room(self) -> int:
        """The most words that keys, values and what keeps them apart can take in a text."""

    @model_validator(mode="after")
    def _possible(self) -> Cues:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        if types > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        if self.shortest < self.room:
            raise ValueError(f"keys and values can take {self.room} words, but the shortest text has {self.shortest}")
        return self


class Evidence(Cues):
    """Parameters of `evidence`; each relevant key occurs once in every text.

    Attributes:
        bare: least and largest number of values in a text that belong to no key.
    """

    bare: Numbers

    @property
    def room(self) -> int:
        """A bare value needs the fillers that keep it apart from the key before it."""
        return 2 * (self.keys + self.distractors[1]) + self.bare[1] * (1 + self.gap)


class Tally(Cues):
    """Parameters of `tally`; each relevant key has an answer of its own.

    Attributes:
        votes: least and largest number of cues of a relevant key in a text.
    """

    votes: Numbers

    @property
    def room(self) -> int:
        """Of all cues; what stands between them is spare."""
        return 2 * (self.keys * self.votes[1] + self.distractors[1])

    @model_validator(mode="after")
    def _answered(self) -> Tally:
        if self.votes[0] == 0:
            raise ValueError("'votes' must be at least 1: a key without a cue has no answer")
        return self


class Words(NamedTuple):
    """The vocabulary by the role of a word."""

    keys: list[Meaning]
    decoys: list[Meaning]
    values: list[Meaning]
    fillers: list[str]


def vocabulary(task: str, parameters: Cues) -> Words:
    """Return made-up words; their last letters show the role to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """
    name = namer(_STEMS, task, parameters.seed)
    return Words(
        keys=[name(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[name(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[name(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=name(parameters.fillers, "u"),
    )


def _corpus(task: str, parameters: Cues, draw_text: Callable[[Words, Label, int, random.Random], Drawn]) -> Corpus:
    """All splits: of every text the words, its class, and the positions of the words that decide it.

    The label has the values of the relevant keys in the order of the keys, each by its most frequent form, joined with
    ``+``. Lengths are uniform inside a bucket. The numbers of texts of two classes in a split differ by at most 1. No
    text occurs twice, within a split or in two.
    """
    words = vocabulary(task, parameters)

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        text, positions = draw_text(words, wanted.label, rng.randint(wanted.low, wanted.high), rng)
        named = "+".join(words.values[value][0] for value in wanted.label)
        return Segment((" ".join(text), named, " ".join(map(str, positions)))), " ".join(text)

    return distinct_texts(
        task, parameters, draw, [*itertools.product(range(parameters.values), repeat=parameters.keys)]
    )


def scattered(
    blocks: Sequence[tuple[Sequence[str], bool]], length: int, fillers: Sequence[str], rng: random.Random
) -> Drawn:
    """A text of ``length`` words with the blocks in their order at random places, and fillers elsewhere.

    Args:
        blocks: words that stand beside each other, "" for a filler; and whether the first and the last are positions
            that decide the class.
        length: of the text, words.
        fillers: to choose from.
        rng: chooses.
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


def evidence(parameters: Evidence) -> Corpus:
    """Texts whose class depends on a few of their words, which the context determines; see :func:`_corpus`.

    A fact in a text is a key word followed by a value word; the values of the relevant keys are the class. The same
    values also follow other keys and occur alone, so the counts of words do not determine the class. The form of every
    mention of a key or value is drawn independently, so forms do not determine the class.

    A value belongs to the key at most ``gap + 1`` words before it, with only fillers between; bare values have no key
    within that distance.
    """

    def draw(words: Words, label: Label, length: int, rng: random.Random) -> Drawn:
        blocks = _facts(words, label, length, parameters, rng)
        relevant = set(itertools.chain(*words.keys))
        return scattered([(block, block[0] in relevant) for block in blocks], length, words.fillers, rng)

    return _corpus("evidence", parameters, draw)


def _facts(words: Words, label: Label, length: int, parameters: Evidence, rng: random.Random) -> list[list[str]]:
    """Return keys with their values, and bare values, in text order; "" is a filler.

    The fillers that separate a bare value from the previous key belong to its block.
    """
    gap = parameters.gap
    decoys = [rng.choice(words.decoys) for _ in range(rng.randint(*parameters.distractors))]
    facts = [(key, words.values[value]) for key, value in zip(words.keys, label, strict=True)]
    facts += [(key, rng.choice(words.values)) for key in decoys]
    bare: list[tuple[Meaning, Meaning]] = [((), rng.choice(words.values)) for _ in range(rng.randint(*parameters.bare))]
    spare = length - 2 * len(facts) - (1 + gap) * len(bare)
    items = facts + bare
    rng.shuffle(items)
    blocks = []
    near = 0  # within how many words after the last block its key would claim a value
    for key, value in items:
        if key:
            between = rng.randint(0, min(gap, spare))
            spare -= between
            near = gap - between
            blocks.append([form(key, rng), *[""] * between, form(value, rng)])
        else:
            spare += gap - near
            blocks.append([*[""] * near, form(value, rng)])
            near = 0
    return blocks


def tally(parameters: Tally) -> Corpus:
    """Texts whose class is what most of their scattered cues say, for each of a few questions; see :func:`_corpus`.

    A cue is a key word followed by a value word. Every relevant key is a question, and its cues vote: the answer is the
    value that follows it more often than any other does. Other keys carry the same values and count for nothing. No
    single cue decides, so that cues have to be put together.

    How many cues a key has is uniform inside ``votes``, and what they say is uniform among all choices of which the
    answer has more than any other value. Between a key and its value stand at most ``gap`` words, all fillers.
    """

    def draw(words: Words, label: Label, length: int, rng: random.Random) -> Drawn:
        cues = [
            (key, words.values[value], True)
            for key, answer in zip(words.keys, label, strict=True)
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
        return scattered(blocks, length, words.fillers, rng)

    return _corpus("tally", parameters, draw)


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


class DocumentWords(NamedTuple):
    """The vocabulary by the role of a word, beside the end of a sentence."""

    keys: list[str]
    topics: list[str]
    values: list[list[str]]
    fillers: list[str]


def document_words(parameters: Documents) -> DocumentWords:
    """Return made-up words; keys end in ``-o``, other topics in ``-a``, fillers in ``-u``, values in a consonant."""
    name = namer(_STEMS, "documents", parameters.seed)
    values = [name(parameters.value_forms, "") for _ in range(parameters.values)]
    return DocumentWords(
        name(parameters.keys, "o"), name(parameters.topics, "a"), values, name(parameters.fillers, "u")
    )


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
            topics, first = (words.keys, value) if number == decides else (words.topics, rng.choice(classes))
            text += _sentence(rng.choice(topics), first, fillers, words, rng)
            if number == decides:
                positions = range(begin, len(text))
        return Segment((" ".join(text), words.values[value][0], " ".join(map(str, positions)))), " ".join(text)

    return distinct_texts("documents", parameters, draw, classes)


def _sentence(topic: str, first: int, fillers: int, words: DocumentWords, rng: random.Random) -> list[str]:
    """A topic, a form of the value ``first`` and after it one of another value, among so many fillers, and the end."""
    second = rng.choice([value for value in range(len(words.values)) if value != first])
    told = [rng.choice(words.values[first]), rng.choice(words.values[second])]
    told.insert(rng.randrange(3), topic)
    places = set(rng.sample(range(fillers + 3), 3))
    remaining = iter(told)
    return [next(remaining) if i in places else rng.choice(words.fillers) for i in range(fillers + 3)] + [END]
