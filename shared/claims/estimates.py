"""A measure of one run, or of some of its examples, and the difference that two runs make in it, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from shared.claims.comparisons import Sides
from shared.claims.effects import effects, families_of, per_example, scalars, sum_by_family
from shared.claims.results import RunResults
from shared.claims.statistics import LEVEL, Estimate, generator, on_examples, over_seeds, resample
from shared.claims.words import number_of
from shared.errors import ReplicationError
from shared.metrics.quantities import Example, Measure
from shared.metrics.registry import known, measure, split_of

Interval = tuple[float, float]
RESAMPLES = 2_000
"""Fewer than verdicts use: many measures are shown at once, and none of them decides a claim."""
FIRST = "test"
"""The split whose measures have no prefix."""


def runs_with(runs: Sequence[RunResults], name: str) -> list[RunResults]:
    """The runs whose test examples carry the field ``name``."""
    return [run for run in runs if any(name in rows[0] for rows in run.examples.values() if rows)]


def estimate_examples(
    of: Measure, examples: Sequence[Sequence[Example]], rng: np.random.Generator, where: str, *, alike: bool = True
) -> Estimate:
    """A measure of examples as mean over the seeds, with draws over examples, or over their families, and seeds.

    Args:
        of: the measure.
        examples: of each seed, the same ones in the same order.
        rng: source of the draws.
        where: the examples come from, for the error.
        alike: whether they are; where each seed has its own, their chance is part of how the seeds differ.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    assert of.corpus is not None, "a breakdown needs a measure of examples"
    found = [per_example(of, rows, where) for rows in examples]
    if "family" in examples[0][0]:
        found = [sum_by_family(each, families_of(rows)) for each, rows in zip(found, examples, strict=True)]
    functions = [on_examples(statistics, of.corpus) for statistics in found]
    if not alike:
        own = np.array([value(np.ones((1, len(rows))))[0] for value, rows in zip(functions, found, strict=True)])
        return over_seeds(own, np.repeat(own[:, None], RESAMPLES, axis=1), rng)
    drawn = len(found[0])
    values, draws = resample(functions, np.zeros(drawn, dtype=np.int64), rng, RESAMPLES)
    return over_seeds(values, draws, rng, drawn)


def estimate(run: RunResults, metric: str) -> Estimate | None:
    """A metric on the test split, mean over seeds, with its draws; None where the run has none.

    The draws of a metric with one number per run vary over seeds only; with a single seed they are constant.
    """
    if metric not in run.mean:
        return None
    of, rng = measure(metric), generator(run.variant, metric)
    tested = [[row for row in rows if row["split"] == "test"] for rows in run.examples.values()]
    if tested and of.of(tested[0]) is not None:
        return estimate_examples(of, tested, rng, str(run.folder), alike=not run.drawn_anew)
    values = scalars(run, metric)
    return over_seeds(values, np.repeat(values[:, None], RESAMPLES, axis=1), rng)


@dataclass(frozen=True)
class Difference:
    """A measure of two runs.

    Attributes:
        metric: its name in metrics.json.
        left, right: means over the seeds that both have; over all where they share none, or have other test data.
        value: right minus left.
        interval: of 95 %; None where nothing tells how far chance reaches.
        based_on: what the interval covers, or why there is none.
    """

    metric: str
    left: float
    right: float
    value: float
    interval: Interval | None
    based_on: str

    @property
    def sure(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and not self.interval[0] <= 0.0 <= self.interval[1]


def shared_metrics(left: RunResults, right: RunResults) -> list[str]:
    """The measures that both have and that are better one way or the other, in the order of the left one's file."""
    either = {name for values in right.metrics.values() for name in values}
    of_left = dict.fromkeys(name for values in left.metrics.values() for name in values)
    measures = {name: known(split_of(name)[1]) for name in of_left if name in either}  # perhaps of a further split
    return [name for name, found in measures.items() if found is not None and found.better is not None]


def difference(left: RunResults, right: RunResults, metric: str, *, same_data: bool = True) -> Difference:
    """Compare two runs in one measure.

    Equal seeds are pairs. Where the test examples of both are at hand, they are resampled together with the seeds;
    where the two share no seed, the interval is Welch's.

    Args:
        left, right: the runs.
        metric: that both have.
        same_data: whether both are known to be tested on the same examples; if not, there is no interval.
    """
    ours, theirs = (
        {seed: values[metric] for seed, values in run.metrics.items() if metric in values} for run in (left, right)
    )
    shared = sorted(ours.keys() & theirs.keys())
    if shared and same_data:
        ours, theirs = ({seed: side[seed] for seed in shared} for side in (ours, theirs))
    values = [*ours.values()], [*theirs.values()]
    means = [float(np.mean(each)) for each in values]
    if not same_data:
        interval, based_on = None, "test data that differ or are not known"
    elif not shared:
        interval, based_on = _welch(*values), f"{len(ours)} and {number_of(len(theirs), 'seed')}, not paired"
    else:
        paired = _paired(*values), number_of(len(shared), "paired seed")
        interval, based_on = _resampled(left, right, metric, shared) or paired
    return Difference(metric, means[0], means[1], means[1] - means[0], interval, based_on)


def _paired(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Student's interval of the mean of the pairs' differences."""
    pairs = np.array(theirs) - np.array(ours)
    if len(pairs) < 2:
        return None
    reach = stdtrit(len(pairs) - 1, (1.0 + LEVEL) / 2.0) * pairs.std(ddof=1) / math.sqrt(len(pairs))
    return float(pairs.mean() - reach), float(pairs.mean() + reach)


def _welch(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Welch's interval of the difference of two means (Welch 1947)."""
    if min(len(ours), len(theirs)) < 2 or not (np.ptp(ours) or np.ptp(theirs)):
        return None
    from scipy.stats import ttest_ind  # here: few reports wait for the second that it takes

    interval = ttest_ind(theirs, ours, equal_var=False).confidence_interval(LEVEL)
    return float(interval.low), float(interval.high)


def _resampled(left: RunResults, right: RunResults, metric: str, seeds: Collection[int]) -> tuple[Interval, str] | None:
    """The interval over seeds and test examples; None where these are not at hand or are not those of the measure."""
    split, name = split_of(metric)
    if len(seeds) < 2:  # one seed shows nothing of how seeds differ
        return None
    if measure(name).statistics is None or not all(run.examples.keys() >= {*seeds} for run in (left, right)):
        return None
    where, names = {"split": split or FIRST}, ("left", "right")
    comparison = Sides(kind="less", variants=names, metric=name, relevant=1.0, where=where)
    alike = [run.with_seeds({*seeds}.__contains__) for run in (left, right)]
    runs = [replace(run, variant=side) for run, side in zip(alike, names, strict=True)]
    rng = generator(left.variant, right.variant, metric)
    try:
        found = effects(comparison, runs, rng, RESAMPLES)
    except ReplicationError:  # other examples, or none that carry the measure: what the seeds say is left
        return None
    estimate = over_seeds(found.values, found.draws, rng, found.drawn)
    if np.isnan(estimate.interval()).any():  # on some resamples there is nothing to compute the measure from
        return None
    of = f"{found.drawn or found.n:,} {found.drawn_of or 'examples'}"
    return estimate.interval(), f"{number_of(len(seeds), 'paired seed')}, {of}"
