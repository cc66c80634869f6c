"""From the runs that a comparison names to resampled estimates of its metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.claims import schema
from shared.claims.results import RunResults, check_paired
from shared.claims.statistics import (
    RESAMPLES,
    Estimate,
    Statistic,
    bin_labels,
    jointly_over_seeds,
    on_examples,
    over_seeds,
    rank_correlation,
    resample,
    slope_over_bins,
)
from shared.errors import ReplicationError
from shared.metrics.quantities import Array, Example, Measure
from shared.metrics.registry import measure


@dataclass(frozen=True)
class Sample:
    """Estimates of one metric for several runs, on the same resampled examples.

    Attributes:
        estimates: one per run; of a rank correlation the one over all runs.
        n: test examples used, or None where the metric is one number per run.
        variance: what the draws cover: "examples+seeds", "examples", "seeds" or "none"; "families" instead of
            "examples" where they are drawn by these.
    """

    estimates: list[Estimate]
    n: int | None
    variance: str


def sample(comparison: schema.Comparison, runs: Sequence[RunResults], rng: np.random.Generator) -> Sample:
    """Estimate the comparison's metric (or its slope) for every run, or the rank correlation over them.

    Raises:
        ReplicationError: examples are not the same, none is selected, or the metric is missing.
    """
    drawn, n, drawn_of = _drawn(comparison, runs, rng)
    if isinstance(comparison, schema.RankCorrelation):
        joint = []
        for both in zip(*drawn, strict=True):  # both metrics of one run at a time
            values, draws = (np.stack(arrays) for arrays in zip(*both, strict=True))
            joint.append(jointly_over_seeds(values, draws, rng))
        first, second = zip(*joint, strict=True)
        sign = -1.0 if comparison.sign == "negative" else 1.0
        estimates = [rank_correlation(first, [sign * estimate for estimate in second])]
    else:
        estimates = [over_seeds(value, draws, rng) for value, draws in drawn[0]]
    covered = (*drawn_of, *(["seeds"] if _several(runs) else []))
    return Sample(estimates, n, "+".join(covered) or "none")


def _several(runs: Sequence[RunResults]) -> bool:
    return min(len(run.seeds) for run in runs) > 1


def _drawn(
    comparison: schema.Comparison, runs: Sequence[RunResults], rng: np.random.Generator
) -> tuple[list[list[tuple[Array, Array]]], int | None, list[str]]:
    """For each metric and run the values (K,) and draws (K, R) of its seeds; how many examples; what is drawn of them.

    All metrics that examples carry are drawn on the same resamples; of the others each draw is the value.
    """
    metrics = comparison.metrics()
    known = [name for name in metrics if measure(name).statistics is not None]
    if isinstance(comparison, schema.Slope) and not known:
        raise ReplicationError(f"'{comparison.name}': a slope needs a metric that test examples carry.")
    resampled: Iterator[tuple[Array, Array]] = iter(())
    n: int | None = None
    drawn_of: list[str] = []
    if known:
        chosen = _Chosen.of(comparison, runs[0])
        of_all = [(measure(name), run) for name in known for run in runs]
        functions = [chosen.statistic(comparison, of, run, seed) for of, run in of_all for seed in run.seeds]
        values, draws = resample(functions, chosen.strata, rng)
        ends = np.cumsum([len(run.seeds) for _, run in of_all])[:-1]
        resampled = zip(np.split(values, ends), np.split(draws, ends), strict=True)
        n, drawn_of = len(chosen.indices), ["examples" if chosen.families is None else "families"]
    found = [[next(resampled) if name in known else _constant(run, name) for run in runs] for name in metrics]
    return found, n, drawn_of


def _constant(run: RunResults, metric: str) -> tuple[Array, Array]:
    values = scalars(run, metric)
    return values, np.repeat(values[:, None], RESAMPLES, axis=1)


@dataclass(frozen=True)
class _Chosen:
    """The test examples that count.

    Examples of one ``family``, such as related proteins, are not independent: they are drawn together or not at all.

    Attributes:
        reference: all examples of one seed, to which those of every other run must correspond.
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
    def of(cls, comparison: schema.Comparison, run: RunResults) -> _Chosen:
        reference = next(iter(run.examples.values()), [])
        indices = np.array([i for i, example in enumerate(reference) if selected(example, comparison.where)], int)
        covariate, strata = np.zeros(len(indices)), np.zeros(len(indices), dtype=np.int64)
        if isinstance(comparison, schema.Slope) and len(indices):
            covariate = np.array([reference[i][comparison.covariate] for i in indices], dtype=np.float64)
            strata = bin_labels(covariate, comparison.bins)
            indices, covariate, strata = indices[strata >= 0], covariate[strata >= 0], strata[strata >= 0]
            if len(np.unique(strata)) < 2:
                raise ReplicationError(
                    f"'{comparison.name}': the test examples of {run.folder} fill fewer than two bins of "
                    f"{comparison.covariate}; choose other 'bins'."
                )
        if not len(indices):
            raise ReplicationError(f"'{comparison.name}': no test example of {run.folder} meets {comparison.where}.")
        if "family" not in reference[indices[0]]:
            return cls(reference, indices, strata, covariate, None)
        if isinstance(comparison, schema.Slope):
            raise ReplicationError(f"'{comparison.name}': there are no slopes over examples that have families.")
        names, families = np.unique([reference[i]["family"] for i in indices], return_inverse=True)
        return cls(reference, indices, np.zeros(len(names), dtype=np.int64), covariate, families)

    def statistic(self, comparison: schema.Comparison, of: Measure, run: RunResults, seed: int) -> Statistic:
        rows = run.examples.get(seed, [])
        check_paired(self.reference, rows, f"{run.variant}, seed {seed},")
        statistics = per_example(of, [rows[i] for i in self.indices], str(run.folder))
        assert of.corpus is not None, "a measure with statistics has a corpus function"
        if isinstance(comparison, schema.Slope):
            return slope_over_bins(statistics, of.corpus, self.covariate, self.strata)
        if self.families is not None:
            statistics = np.stack([np.bincount(self.families, column) for column in statistics.T], axis=1)
        return on_examples(statistics, of.corpus)


def scalars(run: RunResults, metric: str) -> Array:
    """One number per seed (K,) from metrics.json.

    Raises:
        ReplicationError: a seed lacks it.
    """
    try:
        return np.array([run.metrics[seed][metric] for seed in run.seeds], dtype=np.float64)
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


def selected(example: Example, where: Mapping[str, schema.Condition]) -> bool:
    """Whether the example meets every condition: equals the value, or lies in the inclusive range."""
    for name, wanted in where.items():
        value = example.get(name)
        if isinstance(wanted, tuple):
            if value is None or not wanted[0] <= value <= wanted[1]:
                return False
        elif value != wanted:
            return False
    return True
