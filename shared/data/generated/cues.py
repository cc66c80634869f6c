"""Texts of cues among fillers: what the generated tasks `evidence` and `tally` share.

A cue is a key word followed by a value word; what the cues of the relevant keys say is the class of a text. A key or a
value is a meaning with several word forms, of which some are frequent and some are rare.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from shared.config import Strict
from shared.data.generated.buckets import Buckets
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

_TRIES = 100  # draws before an error, for a text that is not a duplicate
_STEMS = [
    "".join(letters)
    for pattern in (("bdfghklmnprstvwz", "aeiou", "lmnrstv"), ("bdfk", "aeiou", "lmn", "aeiou", "rst"))
    for letters in itertools.product(*pattern)
]

Meaning = tuple[str, ...]
"""The word forms of a key or of a value, the most frequent first."""
Label = tuple[int, ...]
"""For every relevant key, in order, the number of a value."""


def _range(numbers: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= numbers[0] <= numbers[1]:
        raise ValueError(f"{list(numbers)} is not a range of numbers")
    return numbers


Numbers = Annotated[tuple[int, int], AfterValidator(_range)]


class Cues(Strict):
    """Parameters of a task of cues.

    Attributes:
        TASK: the name of the task.
        seed: seed of the words and of every split (each split has its own generator).
        keys: number of relevant keys.
        decoys: number of irrelevant keys.
        values: number of values of a key; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        distractors: least and largest number of decoys with a value in a text; a decoy can occur repeatedly.
        splits: split name to its texts. A split does not depend on later ones.
    """

    TASK: ClassVar[str]

    seed: int = Field(ge=0)
    keys: int = Field(gt=0)
    decoys: int = Field(ge=0)
    values: int = Field(gt=1)
    key_forms: int = Field(gt=0)
    value_forms: int = Field(gt=0)
    fillers: int = Field(gt=0)
    gap: int = Field(ge=0)
    distractors: Numbers
    splits: dict[str, Buckets] = Field(min_length=1)

    @property
    def room(self) -> int:
        """The largest number of words that keys and values can take."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _possible(self) -> Cues:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        if types > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        if shortest < self.room:
            raise ValueError(f"keys and values can take {self.room} words, but the shortest text has {shortest}")
        return self


class Words(NamedTuple):
    """The vocabulary of a task by the role of a word."""

    keys: list[Meaning]
    decoys: list[Meaning]
    values: list[Meaning]
    fillers: list[str]


Drawn = Callable[[Label, int, Words, random.Random], list[list[str]]]
"""From a label and the length of a text to its cues in text order, a list of words each; "" is a filler."""


def vocabulary(parameters: Cues) -> Words:
    """Return made-up words; their last letters show the role to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """
    stems = list(_STEMS)
    random.Random(f"{parameters.TASK} lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> Meaning:
        return tuple(stem + ending for stem in itertools.islice(names, count))

    return Words(
        keys=[draw(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[draw(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[draw(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=list(draw(parameters.fillers, "u")),
    )


def labelled_texts(parameters: Cues, draw: Drawn) -> Corpus:
    """Distinct texts with their labels and evidence.

    Lengths are uniform inside a bucket. The numbers of texts of two classes in a split differ by at most 1. No text
    occurs twice, within a split or in two. A label is written as its values, each by its most frequent form, joined
    with ``+``; the evidence is the ascending 0-based positions of the relevant keys and of their values.

    Raises:
        ReplicationError: the parameters make too few distinct texts.
    """
    words = vocabulary(parameters)
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{parameters.TASK} {split} {parameters.seed}")
        classes = _balanced(list(itertools.product(range(parameters.values), repeat=parameters.keys)), rng)
        for low, high in parameters.splits[split].buckets:
            for label in itertools.islice(classes, parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    length = rng.randint(low, high)
                    drawn, positions = _scattered(draw(label, length, words, rng), length, words, rng)
                    if (text := " ".join(drawn)) not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the parameters make too few distinct texts of {low} to {high} words for the split "
                        f"'{split}' of the generated task '{parameters.TASK}'; ask for fewer or add 'fillers'."
                    )
                seen.add(text)
                name = "+".join(words.values[value][0] for value in label)
                yield Segment((text, name, " ".join(map(str, positions))))

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


def form(meaning: Meaning, rng: random.Random) -> str:
    """Draw one of the word forms by Zipf's law."""
    return rng.choices(meaning, [1 / rank for rank in range(1, len(meaning) + 1)])[0]


def _balanced(classes: list[Label], rng: random.Random) -> Iterator[Label]:
    """Yield all classes in random order, again and again, without end."""
    while True:
        rng.shuffle(classes)
        yield from classes


def _scattered(blocks: list[list[str]], length: int, words: Words, rng: random.Random) -> tuple[list[str], list[int]]:
    """Return a text of ``length`` words with the blocks among fillers, and the positions of its evidence."""
    slots = len(blocks) + length - sum(map(len, blocks))  # each slot has a block or a filler
    places = set(rng.sample(range(slots), len(blocks)))
    remaining = iter(blocks)
    relevant = set(itertools.chain(*words.keys))
    text: list[str] = []
    positions: list[int] = []
    for slot in range(slots):
        block = next(remaining) if slot in places else [""]
        if block[0] in relevant:
            positions += len(text), len(text) + len(block) - 1
        text += block
    return [word or rng.choice(words.fillers) for word in text], positions
