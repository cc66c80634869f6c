"""The generated task `evidence`: texts whose class depends on a few of their words, which the context determines.

A fact in a text is a key word followed by a value word; the values of the relevant keys are the class. The same values
also follow other keys and occur alone, so the counts of words do not determine the class.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from shared.config import build
from shared.data.generated.cues import Cues, Drawn, Meaning, Numbers, Words, distinct_texts, form, scattered, vocabulary
from shared.data.splits import Corpus


class Evidence(Cues):
    """Parameters of `evidence`; each relevant key occurs once in every text.

    Attributes:
        bare: least and largest number of values in a text that belong to no key.
    """

    task: ClassVar[str] = "evidence"
    bare: Numbers

    @property
    def room(self) -> int:
        """A bare value needs the fillers that keep it apart from the key before it."""
        return 2 * (self.keys + self.distractors[1]) + self.bare[1] * (1 + self.gap)


def evidence(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it; see :func:`distinct_texts`.

    The three languages are the text, its label (the values of the relevant keys, in the order of the keys, each
    by its most frequent form, joined with ``+``) and its evidence (ascending 0-based positions of the relevant
    keys and of their values). The form of every mention of a key or value is drawn independently, so forms do not
    determine the class.

    A value belongs to the key at most ``gap + 1`` words before it, with only fillers between; bare values have no key
    within that distance.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Evidence`), or make too few distinct texts.
    """
    parameters = build(Evidence, values, where="parameters of the generated task 'evidence'")
    words = vocabulary(parameters)
    classes = list(itertools.product(words.values, repeat=parameters.keys))
    draw = partial(_draw, words=words, parameters=parameters)
    return distinct_texts(parameters, classes, draw, lambda label: "+".join(value[0] for value in label))


def _draw(label: Sequence[Meaning], length: int, rng: random.Random, *, words: Words, parameters: Evidence) -> Drawn:
    """Return a text of ``length`` words with that label, and the positions of its evidence."""
    blocks = _blocks(label, length, words, parameters, rng)
    relevant = set(itertools.chain(*words.keys))
    return scattered([(block, block[0] in relevant) for block in blocks], length, words.fillers, rng)


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
