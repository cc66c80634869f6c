"""What generated texts have in common: made-up words, ranges of lengths, and splits in which no text occurs twice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import AfterValidator, Field

from shared.config import Strict
from shared.data.splits import Segment, SplitName
from shared.errors import ReplicationError

_TRIES = 2_000  # draws per text before an error says that a bucket cannot be filled


def _range(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is not a range")
    return bounds


ASCENDING = AfterValidator(_range)
"""Of two numbers."""
Numbers = Annotated[tuple[Annotated[int, Field(ge=0)], int], ASCENDING]
"""The least and the largest number of something."""
Lengths = Annotated[tuple[Annotated[int, Field(ge=1)], int], ASCENDING]
"""The least and the largest length of something."""


SplitT = TypeVar("SplitT")


class Buckets(Strict):
    """Texts of one split: ``per_bucket`` of each range of lengths, both ends included, in this order."""

    buckets: tuple[Lengths, ...] = Field(min_length=1)
    per_bucket: int = Field(gt=0)


class Generated(Strict, Generic[SplitT]):
    """Parameters of every generated task that has splits.

    Attributes:
        seed: seed of the words, if there are any, and of every split (each split has its own generator).
        splits: split name to what it has. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    splits: dict[SplitName, SplitT] = Field(min_length=1)


class Texts(Generated[Buckets]):
    """Parameters of every generated task of texts."""

    @property
    def shortest(self) -> int:
        """The least length of any text."""
        return min(low for split in self.splits.values() for low, _ in split.buckets)


def syllables(*letters: str) -> list[str]:
    """All words that have one of the first letters, then one of the second, and so on."""
    return ["".join(word) for word in itertools.product(*letters)]


Namer = Callable[[int, str], list[str]]
"""Returns so many more words with an ending."""


def namers(task: str, seed: int, *stems: Sequence[str]) -> list[Namer]:
    """What names a task's words: of each list of stems, in random order, a function that goes on from call to call."""
    rng = random.Random(f"{task} lexicon {seed}")
    return [_namer(list(each), rng) for each in stems]


def _namer(stems: list[str], rng: random.Random) -> Namer:
    rng.shuffle(stems)
    rest = iter(stems)
    return lambda count, ending: [stem + ending for stem in itertools.islice(rest, count)]


class Wanted(NamedTuple):
    """What a text is to be: of a split and, where there are classes, of a class; and its least and largest length."""

    split: str
    label: Any
    low: int
    high: int


Draw = Callable[[Wanted, random.Random], tuple[Segment, *tuple[str, ...]] | None]
"""From what is wanted to a segment and what no other segment may have; None if it came to nothing."""


def distinct_texts(
    task: str, parameters: Texts, draw: Draw, labels: Sequence[Any] = (None,)
) -> dict[str, list[Segment]]:
    """Draw all splits; nothing that may occur once occurs twice, within a split or in two.

    Args:
        task: its name.
        parameters: of the task.
        draw: draws a text.
        labels: classes, each of which a split has as often as the others, or once more.

    Raises:
        ReplicationError: there are too few different texts.
    """
    seen: set[str] = set()

    def segments(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{task} {split} {parameters.seed}")
        own, turns = parameters.splits[split], _in_turn(labels, rng)
        for low, high in own.buckets:
            tries = _TRIES * own.per_bucket
            for label in itertools.islice(turns, own.per_bucket):
                wanted = Wanted(split, label, low, high)
                while (drawn := draw(wanted, rng)) is None or not seen.isdisjoint(drawn[1:]):
                    tries -= 1
                    if not tries:
                        raise ReplicationError(
                            f"the generated task '{task}' finds too few different texts of {low} to {high} words for "
                            f"the split '{split}'; ask for fewer or for longer ones, or give it more words."
                        )
                seen.update(drawn[1:])
                yield drawn[0]

    # Lists, because what was seen depends on the order in which the splits are drawn.
    return {split: list(segments(split)) for split in parameters.splits}


def _in_turn(labels: Sequence[Any], rng: random.Random) -> Iterator[Any]:
    """All labels in random order, again and again."""
    order = list(labels)
    while True:
        rng.shuffle(order)
        yield from order
