"""McNemar's test: whether two classifiers, judged on the same texts, are right equally often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest


@dataclass(frozen=True)
class McNemar:
    """Outcome of the test.

    Attributes:
        only_first: examples that only the first has right.
        only_second: examples that only the second has right.
        p: two-sided p-value that neither is better.
    """

    only_first: int
    only_second: int
    p: float


def mcnemar(first: Sequence[int], second: Sequence[int]) -> McNemar:
    """The exact test (McNemar 1947, with the binomial distribution in the place of chi-squared).

    Examples that both classify rightly, or both wrongly, carry no information about which is better. Under the null
    hypothesis, each of the other examples favours either classifier with probability 1/2.

    Args:
        first, second: of each example, whether it is right (1) or wrong (0), in the same order.

    Raises:
        ValueError: they differ in number.
    """
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if a.shape != b.shape:
        raise ValueError(f"{a.size} and {b.size} outcomes cannot be paired")
    only_first, only_second = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = only_first + only_second
    p = float(binomtest(only_first, discordant).pvalue) if discordant else 1.0
    return McNemar(only_first, only_second, p)
