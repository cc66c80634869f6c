"""Timing of several contenders in turns, so that other load on the machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import torch

Clock = Callable[[], float]
"""Returns seconds since an arbitrary point in time."""
Key = TypeVar("Key", bound=Hashable)


def now() -> float:
    """Return the time in seconds, after all pending work of the GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(function: Callable[[], object], clock: Clock = now) -> Callable[[], float]:
    """Return a function that calls ``function()`` and returns its duration in seconds."""

    def seconds() -> float:
        begin = clock()
        function()
        return clock() - begin

    return seconds


def medians_of_turns(contenders: Mapping[Key, Callable[[], float]], turns: Iterable[object]) -> dict[Key, float]:
    """Return the median duration of each contender; every turn calls each contender once, in order.

    Args:
        contenders: each call measures one run and returns seconds, as the functions of :func:`timed` do.
        turns: one turn per item, at least one; the next item is requested when the previous turn is over.
    """
    taken: dict[Key, list[float]] = {key: [] for key in contenders}
    for _ in turns:
        for key, measure in contenders.items():
            taken[key].append(measure())
    return {key: statistics.median(seconds) for key, seconds in taken.items()}
