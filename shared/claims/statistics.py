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
from scipy import stats

from shared.metrics.quantities import Array

RESAMPLES = 10_000
LEVEL = 0.95

Labels = NDArray[np.int64]
Statistic = Callable[[Array], Array]
"""Counts of how often each example was drawn (R, E) to the value on those examples (R,)."""


@dataclass(frozen=True)
class Estimate:
    """A quantity with its resampling distribution; differences and multiples keep the pairing.

    Attributes:
        value: on the examples and seeds as they are.
        draws: (R,) values under resampling.
    """

    value: float
    draws: Array

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.draws - other.draws)

    def __truediv__(self, other: Estimate) -> Estimate:
        with np.errstate(divide="ignore", invalid="ignore"):
            return Estimate(float(np.divide(self.value, other.value)), self.draws / other.draws)

    def __rmul__(self, factor: float) -> Estimate:
        return Estimate(factor * self.value, factor * self.draws)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The central interval that holds ``level`` of the draws."""
        low, high = np.quantile(self.draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        return float(low), float(high)

    def p_value(self, claimed: tuple[float, float]) -> float:
        """Two-sided p-value against the effects just outside ``claimed``.

        One finite end: the share of draws on the rarer side of it, doubled. Two finite ends: the larger of
        the two one-sided tests (equivalence), doubled likewise. With +1 in both counts, so it is never zero.
        """
        low, high = claimed
        if np.isfinite(claimed).all():
            return min(1.0, 2.0 * max(_share(self.draws <= low), _share(self.draws >= high)))
        border = low if np.isfinite(low) else high
        return min(1.0, 2.0 * min(_share(self.draws <= border), _share(self.draws >= border)))

    def p_value_outside(self, claimed: tuple[float, float]) -> float:
        """Two-sided p-value against the effects just inside ``claimed``: small where the effect lies outside of it.

        The smaller of the two one-sided tests, of an effect above the upper end and of one below the lower end,
        doubled. With one finite end this is :meth:`p_value`, whose test is the same in both directions.
        """
        low, high = claimed
        if not np.isfinite(claimed).all():
            return self.p_value(claimed)
        return min(1.0, 2.0 * min(_share(self.draws >= low), _share(self.draws <= high)))


def _share(hits: NDArray[np.bool_]) -> float:
    return float(1 + hits.sum()) / (1 + len(hits))


def generator(*names: str) -> np.random.Generator:
    """A random generator that depends on ``names`` only, so that a rerun gives the same digits."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def resample(
    statistics: Sequence[Statistic], strata: Labels, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[Array, Array]:
    """Evaluate statistics on the examples and on bootstrap resamples, the same resamples for all of them.

    Args:
        statistics: J functions of example counts.
        strata: (E,) labels; examples are resampled within each stratum, so that no bin ever runs empty.
        rng: source of the resamples.
        resamples: R.

    Returns:
        values (J,) on the examples as they are, and draws (J, R).
    """
    examples = len(strata)
    groups = [np.flatnonzero(strata == label) for label in np.unique(strata)]
    rows = max(1, min(resamples, 2_000_000 // max(1, examples)))  # bounds the counts held at once to 16 MB
    blocks = []
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


def over_seeds(values: Array, draws: Array, rng: np.random.Generator) -> Estimate:
    """Mean over seeds, its draws widened by the variation between seeds (none is known for one seed).

    Chance makes every seed right on other examples. That shows in the variation between seeds and again in
    that of resampled examples; its share of the latter, the variance between the seeds' deviations within a
    resample, is taken out so that it counts once.

    Args:
        values: (K,) one per seed.
        draws: (K, R) under resampling of examples.
        rng: source of the t-distributed deviations.
    """
    seeds = len(values)
    if seeds == 1:
        return Estimate(float(values[0]), draws[0])
    standard_error = values.std(ddof=1) / np.sqrt(seeds)
    by_seeds = standard_error * rng.standard_t(seeds - 1, size=draws.shape[1])
    return _widened(values, draws, by_seeds)


def jointly_over_seeds(values: Array, draws: Array, rng: np.random.Generator) -> list[Estimate]:
    """As :func:`over_seeds` for measures of the same seeds: what varies together stays together.

    The deviations by seeds are drawn from the multivariate t distribution with the seeds' own covariance: each
    seed's deviations from the mean, of all measures alike, are taken times one normal number.

    Args:
        values: (J, K) of J measures.
        draws: (J, K, R).
        rng: source of the deviations.
    """
    seeds, resamples = draws.shape[1:]
    if seeds == 1:
        return [Estimate(float(value[0]), drawn[0]) for value, drawn in zip(values, draws, strict=True)]
    scale = np.sqrt(seeds * rng.chisquare(seeds - 1, size=resamples))
    by_seeds = (values - values.mean(axis=1, keepdims=True)) @ rng.standard_normal((seeds, resamples)) / scale
    return [_widened(*measured) for measured in zip(values, draws, by_seeds, strict=True)]


def _widened(values: Array, draws: Array, by_seeds: Array) -> Estimate:
    """Mean over seeds (K,), its draws that of (K, R) without its share of chance, moved by ``by_seeds`` (R,)."""
    mean = float(values.mean())
    deviations = draws - draws.mean(axis=1, keepdims=True)
    by_examples = deviations.mean(axis=0)
    by_chance = deviations.var(axis=0, ddof=1).mean() / len(values)
    variance = by_examples.var()
    kept = np.sqrt(max(0.0, 1.0 - by_chance / variance)) if variance > 0.0 else 0.0
    return Estimate(mean, mean + kept * by_examples + by_seeds)


def rank_correlation(first: Sequence[Estimate], second: Sequence[Estimate]) -> Estimate:
    """Spearman's correlation of two measures over the V things measured (Spearman 1904); ties share their ranks.

    Noise lowers a correlation, and the draws have that of the values on top of their own: they are moved to lie
    about the value again. The value itself stays too low, so the interval is one of what was measured and errs
    downwards where the things lie close together. All is NaN where a measure has the same value everywhere.
    """
    measured = (np.array([np.append(e.draws, e.value) for e in estimates]) for estimates in (first, second))
    ranks = [stats.rankdata(values, axis=0) for values in measured]  # (V, R + 1) each
    a, b = (rank - rank.mean(axis=0) for rank in ranks)
    with np.errstate(invalid="ignore"):
        found = (a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    value = float(found[-1])
    return Estimate(value, np.clip(found[:-1] + value - np.median(found[:-1]), -1.0, 1.0))


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


def power_law(x: Array, y: Array, rng: np.random.Generator, resamples: int = RESAMPLES) -> Estimate:
    """Exponent b of y = a·x^b: least-squares slope in log-log, with Student-t draws of its standard error.

    Where y is the same everywhere the exponent is 0 without error.

    Args:
        x, y: (N,) positive measurements, repeats of one x included.
        rng: source of the draws.
        resamples: R.
    """
    if np.ptp(y) == 0.0:
        return Estimate(0.0, np.zeros(resamples))
    fit = stats.linregress(np.log(x), np.log(y))
    draws = fit.slope + fit.stderr * rng.standard_t(max(1, len(x) - 2), size=resamples)
    return Estimate(float(fit.slope), np.asarray(draws))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values in the order given (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return [float(p) for p in adjusted]
