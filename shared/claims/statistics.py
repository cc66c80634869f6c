"""Resampling statistics: a paired bootstrap over test examples, crossed with the variation between seeds.

The same resampled examples are used for all variants and seeds of a comparison, so what is hard for all of
them cancels in a difference (paired bootstrap; Koehn 2004, with seeds added).

Picking *seeds* with replacement would be too optimistic for the few that anyone trains: with three, the
interval of their resampled mean cannot reach beyond the outermost seed and covers about 75 %, not 95 %. So a
resample draws the seed mean from Student's t distribution around the observed one, with K-1 degrees of
freedom and the standard error between the K seeds: the exact interval for normal seeds, for any K ≥ 2.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.metrics.quantities import Array

RESAMPLES = 10_000
LEVEL = 0.95

Labels = NDArray[np.int64]
Statistic = Callable[[Array], Array]
"""Counts of how often each example was drawn (R, E) to the value on those examples (R,)."""


@dataclass(frozen=True)
class Estimate:
    """A quantity with its resampling distribution.

    Attributes:
        value: on the examples and seeds as they are.
        draws: (R,) values under resampling.
        centres: (R,) the same without the variation between seeds.
        error, freedom: standard error of the mean over seeds, and its degrees of freedom; 0 where none is known.
    """

    value: float
    draws: Array
    centres: Array | None = None
    error: float = 0.0
    freedom: int = 0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The central interval that holds ``level`` of the draws."""
        low, high = np.quantile(self.draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        return float(low), float(high)

    def p_at_most(self, bound: float) -> float:
        """One-sided p-value of the test that the quantity lies above ``bound``: how probable less is.

        Student's distribution is known, so of the variation between seeds nothing has to be drawn, and p-values may be
        smaller than one in so many draws.
        """
        return self._beyond(bound, 1.0)

    def p_at_least(self, bound: float) -> float:
        """One-sided p-value of the test that the quantity lies below ``bound``: how probable more is."""
        return self._beyond(bound, -1.0)

    def _beyond(self, bound: float, side: float) -> float:
        if self.centres is None or self.error == 0.0:  # with +1 in both counts, so that it is never zero
            return float(1 + (side * self.draws <= side * bound).sum()) / (1 + len(self.draws))
        from scipy.special import stdtr  # here: a check of settings shall not wait for it

        return float(stdtr(self.freedom, side * (bound - self.centres) / self.error).mean())


def generator(*names: str) -> np.random.Generator:
    """A random generator that depends on ``names`` only, so that a rerun gives the same digits."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def resample(
    statistics: Sequence[Statistic], strata: Labels, rng: np.random.Generator, resamples: int
) -> tuple[Array, Array]:
    """Evaluate statistics on the examples and on bootstrap resamples, the same resamples for all of them.

    Args:
        statistics: J functions of example counts.
        strata: (E,) labels; examples are resampled within each stratum, so that no bin ever runs empty.
        rng: source of the resamples.
        resamples: R; may be 0.

    Returns:
        values (J,) on the examples as they are, and draws (J, R).
    """
    examples = len(strata)
    groups = [np.flatnonzero(strata == label) for label in np.unique(strata)]
    rows = max(1, min(resamples, 2_000_000 // max(1, examples)))  # bounds the counts held at once to 16 MB
    blocks = [np.empty((len(statistics), 0))]
    for start in range(0, resamples, rows):
        counts = np.zeros((min(rows, resamples - start), examples))
        for members in groups:
            counts[:, members] = _multinomial(len(counts), len(members), rng)
        blocks.append(np.stack([statistic(counts) for statistic in statistics]))
    ones = np.ones((1, examples))
    return np.array([statistic(ones)[0] for statistic in statistics]), np.concatenate(blocks, axis=1)


def _multinomial(rows: int, size: int, rng: np.random.Generator) -> Array:
    """Counts (rows, size) of ``size`` draws with replacement; faster than ``rng.multinomial``."""
    drawn = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.float64)


def over_seeds(
    values: Array, draws: Array, rng: np.random.Generator, drawn: int | None = None, earlier: Sequence[float] = ()
) -> Estimate:
    """Mean over seeds, its draws widened by the variation between seeds (none is known for one seed).

    By chance every seed is right on other examples. This variance is part of the variation between seeds and also
    of the variation between resamples. Its share of the latter, the variance between the seeds' deviations within
    a resample, is subtracted, so that it counts once.

    The mean of n draws with replacement has (n-1)/n of the true variance, and its distribution is nearly normal, so
    an interval over few families would cover far less than 95 %. The deviations are therefore transformed to
    Student's t distribution with n-1 degrees of freedom.

    Args:
        values: (K,) one per seed.
        draws: (K, R) under resampling of examples.
        rng: source of the t-distributed deviations.
        drawn: n, the examples or families that a resample draws; None where nothing is or there are very many.
        earlier: values of further seeds, whose examples are no longer at hand; what the others say of these counts.
    """
    seeds, pooled = len(values), np.concatenate([values, earlier])
    mean = float(pooled.mean())
    if len(pooled) == 1:
        return Estimate(mean, draws[0])
    standard_error = pooled.std(ddof=1) / np.sqrt(len(pooled))
    by_seeds = standard_error * rng.standard_t(len(pooled) - 1, size=draws.shape[1])
    deviations = draws - draws.mean(axis=1, keepdims=True)
    by_examples = deviations.mean(axis=0)
    by_chance = deviations.var(axis=0, ddof=1).mean() / seeds if seeds > 1 else 0.0
    variance = by_examples.var()
    kept = np.sqrt(max(0.0, 1.0 - by_chance / variance)) if variance > 0.0 else 0.0
    if drawn is not None and drawn > 1 and kept > 0.0:
        by_examples = by_examples * np.sqrt(drawn / rng.chisquare(drawn - 1, size=draws.shape[1]))
    centres = mean + kept * by_examples
    return Estimate(mean, centres + by_seeds, centres, float(standard_error), len(pooled) - 1)


def on_examples(statistics: Array, corpus: Callable[[Array], Array]) -> Statistic:
    """A corpus measure of additive per-example statistics (E, C), as a function of example counts."""
    return lambda counts: corpus(counts @ statistics)


def slope_over_bins(statistics: Array, corpus: Callable[[Array], Array], covariate: Array, bins: Labels) -> Statistic:
    """Least-squares slope of a corpus measure per bin over the bin's mean covariate, as a function of counts.

    Args:
        statistics: (E, C) per example.
        corpus: sums to value.
        covariate: (E,).
        bins: (E,) bin of each example.
    """
    labels = np.unique(bins)
    members = [np.flatnonzero(bins == label) for label in labels]
    centred = np.array([covariate[chosen].mean() for chosen in members])
    centred -= centred.mean()
    weights = centred / (centred**2).sum()

    def slope(counts: Array) -> Array:
        values = [corpus(counts[:, chosen] @ statistics[chosen]) for chosen in members]
        return np.asarray(weights @ np.stack(values))

    return slope


def bin_labels(covariate: Array, bins: int | Sequence[tuple[float, float]]) -> Labels:
    """Bin (E,) of every example: by inclusive ranges (-1: in none), or into that many equally full bins."""
    if isinstance(bins, int):
        edges = np.quantile(covariate, np.linspace(0.0, 1.0, bins + 1)[1:-1])
        return np.searchsorted(edges, covariate, side="left").astype(np.int64)
    labels = np.full(len(covariate), -1, dtype=np.int64)
    for index, (low, high) in enumerate(bins):
        labels[(covariate >= low) & (covariate <= high)] = index
    return labels


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values in the order given (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return [float(p) for p in adjusted]


def mcnemar(first: Sequence[int], second: Sequence[int]) -> tuple[int, int, float]:
    """The exact test (McNemar 1947, with the binomial distribution in the place of chi-squared).

    Examples that both classify rightly, or both wrongly, carry no information about which is better. Under the null
    hypothesis, each of the other examples favours either classifier with probability 1/2.

    Args:
        first, second: of each example, whether it is right (1) or wrong (0), in the same order.

    Returns:
        how many examples only the first has right, how many only the second, and the two-sided p-value that neither is
        better.
    """
    from scipy.stats import binomtest  # here: a check of settings shall not wait for it

    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    only_first, only_second = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = only_first + only_second
    p = float(binomtest(only_first, discordant).pvalue) if discordant else 1.0
    return only_first, only_second, p
