"""The generated task `tally`: texts whose class is what most of their scattered cues say, for each of a few questions.

Every relevant key is a question, and its cues vote: the answer is the value that follows it more often than any other
does. Other keys carry the same values and count for nothing. No single cue decides: cues have to be put together.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import model_validator

from shared.config import build
from shared.data.generated.cues import Cues, Label, Numbers, Words, form, labelled_texts
from shared.data.splits import Corpus


class Tally(Cues):
    """Parameters of `tally`; each relevant key has an answer of its own.

    Attributes:
        votes: least and largest number of cues of a relevant key in a text.
    """

    TASK: ClassVar[str] = "tally"

    votes: Numbers

    @property
    def room(self) -> int:
        """Each cue takes two words."""
        return 2 * (self.keys * self.votes[1] + self.distractors[1])

    @model_validator(mode="after")
    def _answered(self) -> Tally:
        if self.votes[0] == 0:
            raise ValueError("'votes' must be at least 1: a key without a cue has no answer")
        return self


def tally(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it.

    The three languages are the text, its label (for every relevant key, in order, the value that follows it the most
    often) and its evidence. How many cues a key has is uniform inside ``votes``, and what they say is uniform among all
    choices of which the answer has more than any other value. Word forms are drawn by Zipf's law. Between a key and its
    value stand at most ``gap`` words, all fillers.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Tally`), or make too few distinct texts.
    """
    parameters = build(Tally, values, where="parameters of the generated task 'tally'")

    def draw(label: Label, length: int, words: Words, rng: random.Random) -> list[list[str]]:
        return _cues(label, length, words, parameters, rng)

    return labelled_texts(parameters, draw)


def _cues(label: Label, length: int, words: Words, parameters: Tally, rng: random.Random) -> list[list[str]]:
    """Return keys with their values in text order; "" is a filler."""
    cues = [
        (key, words.values[value])
        for key, answer in zip(words.keys, label, strict=True)
        for value in _votes(answer, parameters, rng)
    ]
    for _ in range(rng.randint(*parameters.distractors)):
        cues.append((rng.choice(words.decoys), rng.choice(words.values)))
    rng.shuffle(cues)
    spare = length - 2 * len(cues)
    blocks = []
    for key, value in cues:
        between = rng.randint(0, min(parameters.gap, spare))
        spare -= between
        blocks.append([form(key, rng), *[""] * between, form(value, rng)])
    return blocks


def _votes(answer: int, parameters: Tally, rng: random.Random) -> list[int]:
    """Return what the cues of one key say: the answer more often than any other value."""
    count = rng.randint(*parameters.votes)
    while True:
        votes = [rng.randrange(parameters.values) for _ in range(count)]
        counts = Counter(votes)
        most = counts.pop(answer, 0)
        if most > max(counts.values(), default=0):
            return votes
