"""The generated task `tally`: texts whose class is what most of their scattered cues say, for each of a few questions.

A cue is a key word followed by a value word. Every relevant key is a question, and its cues vote: the answer is the
value that follows it more often than any other does. Other keys carry the same values and count for nothing. No single
cue decides, so that cues have to be put together.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.generated.buckets import Buckets
from shared.data.generated.evidence import STEMS, Meaning, Numbers, Words, balanced, form
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

_TRIES = 100  # draws before an error, for a text that is not a duplicate


class Tally(Strict):
    """Parameters of `tally`.

    Attributes:
        seed: seed of the words and of every split (each split has its own generator).
        keys: number of relevant keys, each with an answer of its own.
        decoys: number of irrelevant keys.
        values: number of values; with k keys there are ``values ** k`` classes.
        key_forms: word types of each key, relevant or not.
        value_forms: word types of each value.
        fillers: number of meaningless word types.
        gap: largest number of fillers between a key and its value.
        votes: least and largest number of cues of a relevant key in a text.
        distractors: least and largest number of decoys with a value in a text.
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
    votes: Numbers
    distractors: Numbers
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> Tally:
        types = (self.keys + self.decoys) * self.key_forms + self.values * self.value_forms + self.fillers
        if types > len(STEMS):
            raise ValueError(f"at most {len(STEMS)} words can be named, not {types}")
        if self.values**self.keys > 1000:
            raise ValueError(f"{self.keys} keys with {self.values} values make more than 1000 classes")
        if self.votes[0] == 0:
            raise ValueError("'votes' must be at least 1: a key without a cue has no answer")
        if self.distractors[1] and not self.decoys:
            raise ValueError("'distractors' need decoys, and there are none")
        room = 2 * (self.keys * self.votes[1] + self.distractors[1])
        shortest = min(low for split in self.splits.values() for low, _ in split.buckets)
        if shortest < room:
            raise ValueError(f"keys and values can take {room} words, but the shortest text has {shortest}")
        return self


def vocabulary(parameters: Tally) -> Words:
    """Return made-up words; their last letters show the role to human readers only.

    Relevant keys end in ``-o``, decoys in ``-a``, fillers in ``-u``, values in a consonant.
    """
    stems = list(STEMS)
    random.Random(f"tally lexicon {parameters.seed}").shuffle(stems)
    names = iter(stems)

    def draw(count: int, ending: str) -> Meaning:
        return tuple(stem + ending for stem in itertools.islice(names, count))

    return Words(
        keys=[draw(parameters.key_forms, "o") for _ in range(parameters.keys)],
        decoys=[draw(parameters.key_forms, "a") for _ in range(parameters.decoys)],
        values=[draw(parameters.value_forms, "") for _ in range(parameters.values)],
        fillers=list(draw(parameters.fillers, "u")),
    )


def tally(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it.

    The three languages are the text, its label (for every relevant key, in order, the value that follows it the most
    often, by its most frequent form, joined with ``+``) and its evidence (ascending 0-based positions of the relevant
    keys and of their values). How many cues a key has is uniform inside ``votes``, and what they say is uniform among
    all choices of which the answer has more than any other value. Word forms are drawn by Zipf's law.

    Lengths are uniform inside a bucket. The numbers of texts of two classes in a split differ by at most 1. No text
    occurs twice, within a split or in two. Between a key and its value stand at most ``gap`` words, all fillers.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Tally`), or make too few distinct texts.
    """
    parameters = build(Tally, values, where="parameters of the generated task 'tally'")
    words = vocabulary(parameters)
    seen: set[str] = set()

    def texts(split: str) -> Iterator[Segment]:
        rng = random.Random(f"tally {split} {parameters.seed}")
        answers = list(itertools.product(range(parameters.values), repeat=parameters.keys))
        classes = balanced(answers, rng)
        for low, high in parameters.splits[split].buckets:
            for label in itertools.islice(classes, parameters.splits[split].per_bucket):
                for _ in range(_TRIES):
                    drawn, positions = _draw(label, rng.randint(low, high), words, parameters, rng)
                    if (text := " ".join(drawn)) not in seen:
                        break
                else:
                    raise ReplicationError(
                        f"the parameters make too few distinct texts of {low} to {high} words for the split "
                        f"'{split}' of the generated task 'tally'; ask for fewer or add 'fillers'."
                    )
                seen.add(text)
                name = "+".join(words.values[value][0] for value in label)
                yield Segment((text, name, " ".join(map(str, positions))))

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(texts(split)) for split in parameters.splits}


def _draw(
    label: tuple[int, ...], length: int, words: Words, parameters: Tally, rng: random.Random
) -> tuple[list[str], list[int]]:
    """Return a text of ``length`` words with that label, and the positions of its evidence."""
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
    slots = len(blocks) + spare  # each slot has a block or a filler
    places = set(rng.sample(range(slots), len(blocks)))
    remaining = iter(blocks)
    text: list[str] = []
    positions: list[int] = []
    for slot in range(slots):
        block, relevant = next(remaining) if slot in places else ([""], False)
        if relevant:
            positions += len(text), len(text) + len(block) - 1
        text += block
    return [word or rng.choice(words.fillers) for word in text], positions


def _votes(answer: int, parameters: Tally, rng: random.Random) -> list[int]:
    """Return what the cues of one key say: the answer more often than any other value."""
    count = rng.randint(*parameters.votes)
    while True:
        votes = [rng.randrange(parameters.values) for _ in range(count)]
        counts = Counter(votes)
        most = counts.pop(answer, 0)
        if most > max(counts.values(), default=0):
            return votes
