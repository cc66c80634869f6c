"""The generated task `tally`: texts whose class is what most of their scattered cues say, for each of a few questions.

A cue is a key word followed by a value word. Every relevant key is a question, and its cues vote: the answer is the
value that follows it more often than any other does. Other keys carry the same values and count for nothing. No single
cue decides, so that cues have to be put together.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import model_validator

from shared.config import build
from shared.data.generated.cues import Cues, Drawn, Numbers, Words, distinct_texts, form, scattered, vocabulary
from shared.data.splits import Corpus


class Tally(Cues):
    """Parameters of `tally`; each relevant key has an answer of its own.

    Attributes:
        votes: least and largest number of cues of a relevant key in a text.
    """

    task: ClassVar[str] = "tally"
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


def tally(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it; see :func:`distinct_texts`.

    The three languages are the text, its label (for every relevant key, in order, the value that follows it the most
    often, by its most frequent form, joined with ``+``) and its evidence (ascending 0-based positions of the relevant
    keys and of their values). How many cues a key has is uniform inside ``votes``, and what they say is uniform among
    all choices of which the answer has more than any other value. Between a key and its value stand at most ``gap``
    words, all fillers.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Tally`), or make too few distinct texts.
    """
    parameters = build(Tally, values, where="parameters of the generated task 'tally'")
    words = vocabulary(parameters)
    classes = list(itertools.product(range(parameters.values), repeat=parameters.keys))
    draw = partial(_draw, words=words, parameters=parameters)
    return distinct_texts(parameters, classes, draw, lambda label: "+".join(words.values[value][0] for value in label))


def _draw(label: tuple[int, ...], length: int, rng: random.Random, *, words: Words, parameters: Tally) -> Drawn:
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
    return scattered(blocks, length, words.fillers, rng)


def _votes(answer: int, parameters: Tally, rng: random.Random) -> list[int]:
    """Return what the cues of one key say: the answer more often than any other value."""
    count = rng.randint(*parameters.votes)
    while True:
        votes = [rng.randrange(parameters.values) for _ in range(count)]
        counts = Counter(votes)
        most = counts.pop(answer, 0)
        if most > max(counts.values(), default=0):
            return votes
