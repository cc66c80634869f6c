"""From the runs that a comparison names to one effect per seed, with what resampled test examples make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.claims.comparisons import Comparison, Condition, Correlation, Sides, Trend
from shared.claims.results import RunResults, check_paired
from shared.claims.statistics import RESAMPLES, Statistic, bin_labels, on_examples, resample, slope_over_bins
from shared.errors import ReplicationError
from shared.metrics.quantities import Array, Example, Measure
from shared.metrics.registry import measure


@dataclass(frozen=True)
class Effects:
    """One effect for every seed, positive where it agrees with the claim (``equal``: where the first is larger).

    Attributes:
        seeds: (K,) those that all variants have.
        values: (K,) on the test examples as they are.
        draws: (K, R) on resampled examples, the same ones for every seed.
        sides: variant to its mean over the seeds, as measured.
        n: test examples, or None where the metric is one number per run.
        drawn_of: what is resampled beside seeds: "examples", "families" or nothing; "draws" where every seed has data
            of its own, so that nothing is.
        drawn: how many of these there are; None if nothing is resampled.
        repeats: for a correlation, its expected value between two seeds if the true one is 1; otherwise 1.
    """

    seeds: tuple[int, ...]
    values: Array
    draws: Array
    sides: Mapping[str, float]
    n: int | None
    drawn_of: str
    drawn: int | None
    repeats: float = 1.0


def effects(
    comparison: Comparison, runs: Sequence[RunResults], rng: np.random.Generator, resamples: int | None = None
) -> Effects:
    """The effect of every seed; the same seed of two variants is a pair.

    Args:
        comparison: what is compared.
        runs: of its variants, in its order.
        rng: source of the resamples.
        resamples: R; default: the number that verdicts use.

    Raises:
        ReplicationError: the variants share no seed, examples are not the same, none is selected, a metric is missing,
            or a number whose logarithm is needed is not positive.
    """
    seeds = tuple(sorted(set.intersection(*(set(run.seeds) for run in runs))))
    if not seeds:
        names = " and ".join(run.variant for run in runs)
        raise ReplicationError(f"'{comparison.name}': {names} share no seed, and only equal seeds are compared.")
    measured, chosen = _measured(comparison, runs, seeds, rng, RESAMPLES if resamples is None else resamples)
    observed = measured[..., 0]  # (metrics, V, K); what follows are resamples
    found = _combined(comparison, _scaled(comparison, measured, runs)) * comparison.sign
    sides = {run.variant: float(mean) for run, mean in zip(runs, observed[0].mean(axis=-1), strict=True)}
    repeats = _repeats(observed) if isinstance(comparison, Correlation) else 1.0
    if chosen is None:
        return Effects(seeds, found[:, 0], found[:, 1:], sides, None, "", None, repeats)
    if runs[0].drawn_anew:
        return Effects(seeds, found[:, 0], found[:, 1:], sides, len(chosen.indices), "draws", None, repeats)
    of, drawn = "examples" if chosen.families is None else "families", len(chosen.strata)
    return Effects(seeds, found[:, 0], found[:, 1:], sides, len(chosen.indices), of, drawn, repeats)


def _measured(
    comparison: Comparison, runs: Sequence[RunResults], seeds: Sequence[int], rng: np.random.Generator, resamples: int
) -> tuple[Array, SelectedExamples | None]:
    """The metrics of every variant and seed, (metrics, V, K, 1 + R): as they are, then on resampled examples.

    Beside them the examples that count; None where no metric is of examples.
    """
    names = comparison.metrics()
    carried = [name for name in names if measure(name).statistics is not None]
    if comparison.over is not None and not carried:
        raise ReplicationError(f"'{comparison.name}': a slope needs a metric that test examples carry.")
    chosen = SelectedExamples.of(comparison, runs[0], seeds[0]) if carried else None
    resampled: dict[str, Array] = {}
    if chosen is not None:
        of_all = [(name, run, seed) for name in carried for run in runs for seed in seeds]
        if runs[0].drawn_anew:  # what chance makes of a seed's own examples is part of how the seeds differ
            own = {seed: SelectedExamples.of(comparison, runs[0], seed) for seed in seeds}
            alone = [own[seed].value(measure(name), run, seed) for name, run, seed in of_all]
            both = np.repeat(np.array(alone)[:, None], 1 + resamples, axis=1)
        else:
            functions = [chosen.statistic(measure(name), run, seed) for name, run, seed in of_all]
            values, draws = resample(functions, chosen.strata, rng, resamples)
            both = np.concatenate([values[:, None], draws], axis=1)
        resampled = dict(zip(carried, both.reshape(len(carried), len(runs), len(seeds), -1), strict=True))
    fixed = {name: _fixed(runs, seeds, name, rng, resamples) for name in names if name not in resampled}
    return np.stack([resampled[name] if name in resampled else fixed[name] for name in names]), chosen


def _fixed(
    runs: Sequence[RunResults], seeds: Sequence[int], metric: str, rng: np.random.Generator, resamples: int
) -> Array:
    """Numbers of whole runs (V, K, 1 + R), the same on every resample.

    A number on a grid may lie anywhere within a step of it: every resample moves it by up to half of a step (or of
    itself), alike in all seeds of a variant, for seeds that fall on one point agree no better than that.
    """
    values = np.array([scalars(run, metric, seeds) for run in runs])
    found = np.repeat(values[..., None], 1 + resamples, axis=-1)
    if (step := measure(metric).step) is not None:
        steps = np.minimum([scalars(run, step, seeds) for run in runs], values)
        found[..., 1:] += steps[..., None] * rng.uniform(-0.5, 0.5, (len(runs), 1, resamples))
    return found


def _scaled(comparison: Comparison, measured: Array, runs: Sequence[RunResults]) -> Array:
    if comparison.scale == "plain":
        return measured
    if (measured <= 0.0).any():
        raise ReplicationError(
            f"'{comparison.name}': 'scale: log' needs positive numbers, and {comparison.metric} is not in "
            f"{' or '.join(str(run.folder) for run in runs)}."
        )
    return np.asarray(np.log(measured))


def _combined(comparison: Comparison, measured: Array) -> Array:
    """From (metrics, V, K, 1 + R) to the effect of every seed (K, 1 + R), as measured."""
    first = measured[0]
    if isinstance(comparison, Sides):
        if comparison.than is None:
            return np.asarray(first[0] - first[1])
        return np.asarray(first[0] - (np.log(comparison.than) if comparison.scale == "log" else comparison.than))
    if isinstance(comparison, Trend):
        steps = np.arange(len(first)) - (len(first) - 1) / 2.0
        return np.asarray(np.tensordot(steps / (steps**2).sum(), first, axes=1))
    assert isinstance(comparison, Correlation), "there is no other kind"
    sign = -1.0 if comparison.direction == "negative" else 1.0
    return spearman(first, sign * measured[1]) - comparison.than


def spearman(first: Array, second: Array) -> Array:
    """Spearman's correlation over the first axis (V, …) of two measures; ties share their ranks (Spearman 1904)."""
    from scipy.stats import rankdata  # here: few reports wait for the second that it takes

    a, b = (ranks - ranks.mean(axis=0) for ranks in (rankdata(values, axis=0) for values in (first, second)))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0)))


def _repeats(measured: Array) -> float:
    """How well seeds agree on the ranks of two measures (2, V, K): the root of the product of their own correlations.

    Chance in the runs makes a correlation of two measures smaller by this factor (Spearman 1904).
    """
    first, second = np.triu_indices(measured.shape[-1], k=1)
    if not len(first):
        return 1.0
    own = [spearman(each[:, first], each[:, second]).mean() for each in measured]
    return float(np.sqrt(np.prod(np.clip(own, 0.0, 1.0))))


@dataclass(frozen=True)
class SelectedExamples:
    """The test examples that count.

    Examples of one ``family``, such as related proteins, are not independent: they are drawn together or not at all.

    Attributes:
        reference: all examples of one seed, to which those of every other run must correspond that has the same data.
        indices: (E,) into every run's list.
        strata: bins of what is drawn, the E examples or their families; all 0 if they are not binned.
        covariate: (E,) what bins are of.
        families: (E,) numbers from 0; None where examples are independent.
    """

    reference: list[Example]
    indices: NDArray[np.int64]
    strata: NDArray[np.int64]
    covariate: Array
    families: NDArray[np.int64] | None

    @classmethod
    def of(cls, comparison: Comparison, run: RunResults, seed: int) -> SelectedExamples:
        """Those of a run that a comparison is of.

        Raises:
            ReplicationError: there are none, those that are binned fill fewer than two bins or have families, or a
                range or a slope is of a field that is no number.
        """
        name, where, over = comparison.name, comparison.where, comparison.over
        reference = run.examples.get(seed, [])
        for field in (field for field, wanted in where.items() if isinstance(wanted, tuple)):
            _numbers(name, field, [row for row in reference if row.get(field) is not None] or reference, run)
        indices = np.array([i for i, example in enumerate(reference) if meets(example, where)], int)
        covariate, strata = np.zeros(len(indices)), np.zeros(len(indices), dtype=np.int64)
        if over is not None and len(indices):
            covariate = _numbers(name, over.covariate, [reference[i] for i in indices], run)
            strata = bin_labels(covariate, over.bins)
            indices, covariate, strata = indices[strata >= 0], covariate[strata >= 0], strata[strata >= 0]
            if len(np.unique(strata)) < 2:
                raise ReplicationError(
                    f"'{name}': the test examples of {run.folder} fill fewer than two bins of {over.covariate}; "
                    "choose other 'bins'."
                )
        if not len(indices):
            raise ReplicationError(f"'{name}': no test example of {run.folder} meets {where}.")
        if "family" not in reference[indices[0]]:
            return cls(reference, indices, strata, covariate, None)
        if over is not None:
            raise ReplicationError(f"'{name}': there are no slopes over examples that have families.")
        families = families_of([reference[i] for i in indices])
        return cls(reference, indices, np.zeros(1 + int(families.max()), dtype=np.int64), covariate, families)

    def value(self, of: Measure, run: RunResults, seed: int) -> float:
        """A measure of one run on these examples, or its slope over the bins."""
        return float(self.statistic(of, run, seed)(np.ones((1, len(self.strata))))[0])

    def statistic(self, of: Measure, run: RunResults, seed: int) -> Statistic:
        """A measure of one run, or its slope over the bins, as a function of how often each example is drawn."""
        rows = run.examples.get(seed, [])
        check_paired(self.reference, rows, f"{run.variant}, seed {seed},")
        statistics = per_example(of, [rows[i] for i in self.indices], str(run.folder))
        assert of.corpus is not None, "a measure with statistics has a corpus function"
        if len(np.unique(self.strata)) > 1:
            return slope_over_bins(statistics, of.corpus, self.covariate, self.strata)
        if self.families is not None:
            statistics = sum_by_family(statistics, self.families)
        return on_examples(statistics, of.corpus)


def _numbers(name: str, field: str, examples: Sequence[Example], run: RunResults) -> Array:
    """A field of examples (E,).

    Raises:
        ReplicationError: one of them has no such number; names the fields that are numbers.
    """
    if not all(isinstance(row.get(field), int | float) for row in examples):
        there = sorted(key for key, value in examples[0].items() if isinstance(value, int | float))
        raise ReplicationError(
            f"'{name}': '{field}' is no number of every test example of {run.folder}; choose from {', '.join(there)}."
        )
    return np.array([row[field] for row in examples], dtype=np.float64)


def families_of(examples: Sequence[Example]) -> NDArray[np.int64]:
    """(E,) which family each example belongs to, numbered from 0."""
    numbers: NDArray[np.int64] = np.unique([each["family"] for each in examples], return_inverse=True)[1]
    return numbers


def sum_by_family(statistics: Array, families: NDArray[np.int64]) -> Array:
    """The statistics (E, C) of examples as those of their families (F, C)."""
    return np.stack([np.bincount(families, column) for column in statistics.T], axis=1)


def scalars(run: RunResults, metric: str, seeds: Sequence[int] | None = None) -> Array:
    """One number per seed (K,) from metrics.json; of all seeds by default.

    Raises:
        ReplicationError: a seed lacks it.
    """
    try:
        return np.array([run.metrics[seed][metric] for seed in seeds or run.seeds], dtype=np.float64)
    except KeyError:
        raise ReplicationError(
            f"{run.folder / 'metrics.json'} has no '{metric}' for every seed; check the metric's name in "
            f"claims.yaml, or evaluate '{run.variant}' again."
        ) from None


def per_example(of: Measure, examples: Sequence[Example], where: str) -> Array:
    """Additive statistics (E, C) of every example; zeros for those that have none.

    Raises:
        ReplicationError: no example has any.
    """
    assert of.statistics is not None, "asked only of measures with statistics"
    found = [of.statistics(example) for example in examples]
    width = max((len(row) for row in found if row is not None), default=0)
    if not width:
        raise ReplicationError(f"the test examples under {where} carry nothing to compute '{of.title}' from.")
    return np.array([[0.0] * width if row is None else row for row in found], dtype=np.float64)


def meets(example: Example, where: Mapping[str, Condition]) -> bool:
    """Whether the example meets every condition: equals the value, or lies in the inclusive range."""
    for name, wanted in where.items():
        value = example.get(name)
        if isinstance(wanted, tuple):
            if value is None or not wanted[0] <= value <= wanted[1]:
                return False
        elif value != wanted:
            return False
    return True
