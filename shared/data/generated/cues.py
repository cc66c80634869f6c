"""What the generated tasks `evidence` and `tally` have in common: texts of cues, each a key word with a value word.

The values of the relevant keys are the class. A key or a value is a meaning with several word forms, of which some are
frequent and some are rare. Between a key and its value stand fillers alone, which mean nothing.
"""

from __future__ import annotations

import itertools
import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, model_validator

from shared.config import Strict
from shared.data.generated.buckets import Buckets
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

_TRIES = 100  # draws before an error, for a text that is not a duplicate
STEMS = [
    "".join(letters)
    for pattern in (("bdfghklmnprstvwz", "aeiou", "lmnrstv"), ("bdfk", "aeiou", "lmn", "aeiou", "rst"))
    for letters in itertools.product(*pattern)
]

ClassT = TypeVar("ClassT")

Meaning = tuple[str, ...]
"""The word forms of a key or of a value, the most frequent first."""
Drawn = tuple[list[str], list[int]]
"""The words of a text, and the ascending 0-based positions of its relevant keys and of their values."""


def _range(numbers: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= numbers[0] <= numbers[1]:
        raise ValueError(f"{list(numbers)} is not a range of numbers")
    return numbers


Numbers = Annotated[tuple[int, int], AfterValidator(_range)]


class Cues(Strict):
    """Parameters of both tasks.

    Attributes:
        task: its name.
        seed: seed of the words and of every split (each split has its own generator).
        keys: number of relevant keys.
        decoys: number of irrelevant keys.
        values: number of values; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        distractors: least and largest number of decoys with a value in a text; a decoy can occur repeatedly.
        splits: split name to its texts. A split does not depend on later ones.
    """

    task: ClassVar[str]
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
    @abstractmethod
    def room(self) -> int:
        """The most words that keys, values and what keeps them apart can take in a text."""

    @model_validator(mode="after")
    def _possible(self) -> Cues:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        if types > len(STEMS):
            raise ValueError(f"at most {len(STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        if shortest < self.room:
            raise ValueError(f"keys and values can take {self.room} words, but the shortest text has {shortest}")
        return self


class Words(NamedTuple):
    """The vocabulary by the role of a word."""

    keys: list[Meaning]
    decoys: list[Meaning]
    values: list[Meaning]
    fillers: list[str]


def vocabulary(parameters: Cues) -> Words:
    """Return made-up words; their last letters show the role to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """
    stems = list(STEMS)
    random.Random(f"{parameters.task} lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> Meaning:
        return tuple(stem + ending for stem in itertools.islice(names, count))

    return Words(
        keys=[draw(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[draw(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[draw(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=list(draw(parameters.fillers, "u")),
    )


def distinct_texts(
    parameters: Cues,
    classes: Sequence[ClassT],
    draw: Callable[[ClassT, int, random.Random], Drawn],
    name: Callable[[ClassT], str],
) -> Corpus:
    """All splits: of every text the words, its class, and the positions of the words that decide it.

    Lengths are uniform inside a bucket. The numbers of texts of two classes in a split differ by at most 1. No text
    occurs twice, within a split or in two.

    Args:
        parameters: of the task.
        classes: that texts can have.
        draw: from a class and a length to a text.
        name: of a class.

    Raises:
        ReplicationError: there are too few distinct texts.
    """
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{parameters.task} {split} {parameters.seed}")
        endless = balanced(list(classes), rng)
        for low, high in parameters.splits[split].buckets:
            for label in itertools.islice(endless, parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    words, positions = draw(label, rng.randint(low, high), rng)
                    if (text := " ".join(words)) not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the parameters make too few distinct texts of {low} to {high} words for the split "
                        f"'{split}' of the generated task '{parameters.task}'; ask for fewer or add 'fillers'."
                    )
                seen.add(text)
                yield Segment((text, name(label), " ".join(map(str, positions))))

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


def balanced(classes: list[ClassT], rng: random.Random) -> Iterator[ClassT]:
    """Yield all classes in random order, again and again, without end."""
    while True:
        rng.shuffle(classes)
        yield from classes


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
