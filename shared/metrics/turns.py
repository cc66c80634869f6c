"""How long contenders take that are measured in turns, since a busy machine slows all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import torch

Clock = Callable[[], float]
"""Seconds since whenever."""
Key = TypeVar("Key", bound=Hashable)


def now() -> float:
    """Seconds, when all that was asked of a GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(function: Callable[[], object], clock: Clock = now) -> Callable[[], float]:
    """What calls ``function()`` and returns the seconds that it took."""

    def seconds() -> float:
        begin = clock()
        function()
        return clock() - begin

    return seconds


def medians_of_turns(contenders: Mapping[Key, Callable[[], float]], turns: Iterable[object]) -> dict[Key, float]:
    """The median of what each contender returns, over turns in which each is called once, in their order.

    Args:
        contenders: each measures itself once and returns seconds, as :func:`timed` does.
        turns: as many turns as it has items, at least one; it is asked for the next when the turn before is over.
    """
    taken: dict[Key, list[float]] = {key: [] for key in contenders}
    for _ in turns:
        for key, measure in contenders.items():
            taken[key].append(measure())
    return {key: statistics.median(seconds) for key, seconds in taken.items()}
