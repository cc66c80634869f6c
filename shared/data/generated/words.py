"""What generated texts have in common: made-up words, ranges of lengths, and splits in which no text occurs twice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from shared.config import Strict
from shared.data.splits import Segment
from shared.errors import ReplicationError

_TRIES = 2_000  # draws per text before an error says that a bucket cannot be filled


def _range(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is not a range")
    return bounds


Numbers = Annotated[tuple[Annotated[int, Field(ge=0)], int], AfterValidator(_range)]
"""The least and the largest number of something."""
Lengths = Annotated[tuple[Annotated[int, Field(ge=1)], int], AfterValidator(_range)]
"""The least and the largest length of something."""


class Buckets(Strict):
    """Texts of one split: ``per_bucket`` of each range of lengths, both ends included, in this order."""

    buckets: tuple[Lengths, ...] = Field(min_length=1)
    per_bucket: int = Field(gt=0)


class Texts(Strict):
    """Parameters of every generated task of texts.

    Attributes:
        seed: seed of the words and of every split (each split has its own generator).
        splits: split name to its texts. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @property
    def shortest(self) -> int:
        """The least length of any text."""
        return min(low for split in self.splits.values() for low, _ in split.buckets)


def syllables(*letters: str) -> list[str]:
    """All words that have one of the first letters, then one of the second, and so on."""
    return ["".join(word) for word in itertools.product(*letters)]


def shuffled(words: Iterable[str], task: str, seed: int) -> list[str]:
    """Words in the random order of a task's lexicon."""
    words = list(words)
    random.Random(f"{task} lexicon {seed}").shuffle(words)
    return words


Draw = Callable[[int, int], tuple[Segment, *tuple[str, ...]] | None]
"""From the least and the largest length to a segment and what no other segment may have; None if it came to nothing."""


def distinct_texts(
    task: str, parameters: Texts, draws: Callable[[random.Random, str], Iterable[Draw]]
) -> dict[str, list[Segment]]:
    """Draw all splits; nothing that may occur once occurs twice, within a split or in two.

    Args:
        task: its name.
        parameters: of the task.
        draws: from the random generator of a split and its name to what draws the first text, the second and so on.

    Raises:
        ReplicationError: there are too few different texts.
    """
    seen: set[str] = set()

    def segments(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{task} {split} {parameters.seed}")
        own, drawing = parameters.splits[split], iter(draws(rng, split))
        for low, high in own.buckets:
            tries = _TRIES * own.per_bucket
            for draw in itertools.islice(drawing, own.per_bucket):
                while (drawn := draw(low, high)) is None or not seen.isdisjoint(drawn[1:]):
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
