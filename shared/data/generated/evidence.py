"""The generated task `evidence`: texts whose class depends on a few of their words, which the context determines.

A fact in a text is a key word followed by a value word; the values of the relevant keys are the class. The same values
also follow other keys and occur alone, so the counts of words do not determine the class.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from shared.config import build
from shared.data.generated.cues import Cues, Label, Numbers, Words, form, labelled_texts
from shared.data.splits import Corpus


class Evidence(Cues):
    """Parameters of `evidence`; each relevant key occurs once in every text.

    Attributes:
        bare: least and largest number of values in a text that belong to no key.
    """

    TASK: ClassVar[str] = "evidence"

    bare: Numbers

    @property
    def room(self) -> int:
        """Each fact takes two words; a bare value keeps its distance from the key before it."""
        return 2 * (self.keys + self.distractors[1]) + self.bare[1] * (1 + self.gap)


def evidence(values: Mapping[str, Any]) -> Corpus:
    """Texts, the class of each, and the positions of the words that decide it.

    The three languages are the text, its label (the values of the relevant keys, in the order of the keys) and its
    evidence. The form of every mention of a key or value is drawn independently with a probability proportional to
    1/rank (Zipf's law), so forms do not determine the class. A value belongs to the key at most ``gap + 1`` words
    before it, with only fillers between; bare values have no key within that distance.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Evidence`), or make too few distinct texts.
    """
    parameters = build(Evidence, values, where="parameters of the generated task 'evidence'")

    def draw(label: Label, length: int, words: Words, rng: random.Random) -> list[list[str]]:
        return _blocks(label, length, words, parameters, rng)

    return labelled_texts(parameters, draw)


def _blocks(label: Label, length: int, words: Words, parameters: Evidence, rng: random.Random) -> list[list[str]]:
    """Return keys with their values, and bare values, in text order; "" is a filler.

    The fillers that separate a bare value from the previous key belong to its block.
    """
    gap = parameters.gap
    decoys = [rng.choice(words.decoys) for _ in range(rng.randint(*parameters.distractors))]
    facts = [(key, words.values[value]) for key, value in zip(words.keys, label, strict=True)]
    facts += [(key, rng.choice(words.values)) for key in decoys]
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
