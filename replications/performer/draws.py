"""Shared by the studies of random features: intervals of means and ratios over many draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.95

Values = NDArray[np.float64]


class Interval(NamedTuple):
    """Estimates with the ends of their intervals, of one shape."""

    value: Values
    low: Values
    high: Values

    def exp(self) -> Interval:
        """Return the interval of a geometric mean, or of a ratio, from the interval of its logarithm."""
        return Interval(*(np.exp(x) for x in self))

    def named(self, quantity: str, sizes: Sequence[str] = ("",)) -> dict[str, float]:
        """As metrics ``<quantity><size>``, ``<quantity>_low<size>`` and ``<quantity>_high<size>``."""
        return {
            f"{quantity}{end}{size}": float(x)
            for end, values in zip(("", "_low", "_high"), self, strict=True)
            for size, x in zip(sizes, np.atleast_1d(values), strict=True)
        }


def mean_interval(x: Values, level: float = LEVEL) -> Interval:
    """Student's t interval of the mean of independent draws, along their first axis."""
    mean, error = x.mean(0), stats.sem(x, axis=0)
    reach = stats.t.ppf((1 + level) / 2, len(x) - 1) * error
    return Interval(mean, mean - reach, mean + reach)


def ratio_interval(x: Values, y: Values, level: float = LEVEL) -> Interval:
    """The ratio of the mean of x to that of y, positive both, from the t interval of its logarithm.

    To first order log(x̄/ȳ) varies as the mean of x/x̄ - y/ȳ (the delta method), whether x and y are paired or not. The
    interval is that of the logarithm, because means of squared errors are skewed to the right.

    Args:
        x: (N, …).
        y: (N, …), or (1, …) where it is a constant.
        level: of the interval.
    """
    over, under = x.mean(0), y.mean(0)
    linear = mean_interval(x / over - y / under, level)  # its mean is zero
    logarithm = np.log(over / under)
    return Interval(*(logarithm + part for part in linear)).exp()
