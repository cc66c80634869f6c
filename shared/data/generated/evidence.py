"""The generated task `evidence`: texts whose class depends on a few of their words, which the context determines.

A fact in a text is a key word followed by a value word; the values of the relevant keys are the class. The same values
also follow other keys and occur alone, so the counts of words do not determine the class. A key or a value is a meaning
with several word forms, of which some are frequent and some are rare.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, model_validator

from shared.config import Strict, build
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


def _range(numbers: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= numbers[0] <= numbers[1]:
        raise ValueError(f"{list(numbers)} is not a range of numbers")
    return numbers


Numbers = Annotated[tuple[int, int], AfterValidator(_range)]


class Evidence(Strict):
    """Parameters of `evidence`.

    Attributes:
        seed: seed of the words and of every split (each split has its own generator).
        keys: number of relevant keys; each occurs once in every text.
        decoys: number of irrelevant keys.
        values: number of values of a key; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        distractors: least and largest number of decoys with a value in a text; a decoy can occur repeatedly.
        bare: least and largest number of values in a text that belong to no key.
        splits: split name to its texts. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    keys: int = Field(gt=0)
    decoys: int = Field(ge=0)
    values: int = Field(gt=1)
    key_forms: int = Field(gt=0)
    value_forms: int = Field(gt=0)
    fillers: int = Field(gt=0)
    gap: int = Field(ge=0)
    distractors: Numbers
    bare: Numbers
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Evidence:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        if types > len(STEMS):
            raise ValueError(f"at most {len(STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        room = 2 * (self.keys + self.distractors[1]) + self.bare[1] * (1 + self.gap)
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        if shortest < room:
            raise ValueError(f"keys and values can take {room} words, but the shortest text has {shortest}")
        return self


class Words(NamedTuple):
    """The vocabulary of `evidence` by the role of a word."""

    keys: list[Meaning]
    decoys: list[Meaning]
    values: list[Meaning]
    fillers: list[str]


def vocabulary(parameters: Evidence) -> Words:
    """Return made-up words; their last letters show the role to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """
    stems = list(STEMS)
    random.Random(f"evidence lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> Meaning:
        return tuple(stem + ending for stem in itertools.islice(names, count))

    return Words(
        keys=[draw(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[draw(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[draw(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=list(draw(parameters.fillers, "u")),
    )


def evidence(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it.

    The three languages are the text, its label (the values of the relevant keys, in the order of the keys, each
    by its most frequent form, joined with ``+``) and its evidence (ascending 0-based positions of the relevant
    keys and of their values). The form of every mention of a key or value is drawn independently with a
    probability proportional to 1/rank (Zipf's law), so forms do not determine the class.

    Lengths are uniform inside a bucket. The numbers of texts of two classes in a split differ by at most 1. No text
    occurs twice, within a split or in two. A value belongs to the key at most ``gap + 1`` words before it, with only
    fillers between; bare values have no key within that distance.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Evidence`), or make too few distinct texts.
    """
    parameters = build(Evidence, values, where="parameters of the generated task 'evidence'")
    words = vocabulary(parameters)
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"evidence {split} {parameters.seed}")
        classes = balanced(list(itertools.product(words.values, repeat=parameters.keys)), rng)
        for low, high in parameters.splits[split].buckets:
            for label in itertools.islice(classes, parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    drawn, positions = _draw(label, rng.randint(low, high), words, parameters, rng)
                    if (text := " ".join(drawn)) not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the parameters make too few distinct texts of {low} to {high} words for the split "
                        f"'{split}' of the generated task 'evidence'; ask for fewer or add 'fillers'."
                    )
                seen.add(text)
                name = "+".join(value[0] for value in label)
                yield Segment((text, name, " ".join(map(str, positions))))

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


def balanced(classes: list[ClassT], rng: random.Random) -> Iterator[ClassT]:
    """Yield all classes in random order, again and again, without end."""
    while True:
        rng.shuffle(classes)
        yield from classes


def _draw(
    label: Sequence[Meaning], length: int, words: Words, parameters: Evidence, rng: random.Random
) -> tuple[list[str], list[int]]:
    """Return a text of ``length`` words with that label, and the positions of its evidence."""
    blocks = _blocks(label, length, words, parameters, rng)
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


def _blocks(
    label: Sequence[Meaning], length: int, words: Words, parameters: Evidence, rng: random.Random
) -> list[list[str]]:
    """Return keys with their values, and bare values, in text order; "" is a filler.

    The fillers that separate a bare value from the previous key belong to its block.
    """
    gap = parameters.gap
    decoys = [rng.choice(words.decoys) for _ in range(rng.randint(*parameters.distractors))]
    facts = list(zip(words.keys, label, strict=True)) + [(key, rng.choice(words.values)) for key in decoys]
    bare = [((), rng.choice(words.values)) for _ in range(rng.randint(*parameters.bare))]
    spare = length - 2 * len(facts) - (1 + gap) * len(bare)
    items = [*facts, *bare]
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


def form(meaning: Meaning, rng: random.Random) -> str:
    """Draw one of the word forms by Zipf's law."""
    return rng.choices(meaning, [1 / rank for rank in range(1, len(meaning) + 1)])[0]
