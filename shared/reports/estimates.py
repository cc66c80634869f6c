"""A corpus measure of some runs, or of some of their examples, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.claims.effects import families_of, per_example, scalars, summed
from shared.claims.results import RunResults
from shared.claims.statistics import Estimate, generator, on_examples, over_seeds, resample
from shared.metrics.quantities import Example, Measure
from shared.metrics.registry import measure

RESAMPLES = 2_000


def having(runs: Sequence[RunResults], name: str) -> list[RunResults]:
    """The runs whose test examples carry the field ``name``."""
    return [run for run in runs if any(name in rows[0] for rows in run.examples.values() if rows)]


def estimated(of: Measure, examples: Sequence[Sequence[Example]], rng: np.random.Generator, where: str) -> Estimate:
    """A measure of examples as mean over the seeds, with draws over examples, or over their families, and seeds.

    Args:
        of: the measure.
        examples: of each seed, the same ones in the same order.
        rng: source of the draws.
        where: the examples come from, for the error.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    assert of.corpus is not None, "a breakdown needs a measure of examples"
    found = [per_example(of, rows, where) for rows in examples]
    if "family" in examples[0][0]:
        families = families_of(examples[0])
        found = [summed(statistics, families) for statistics in found]
    drawn = len(found[0])
    functions = [on_examples(statistics, of.corpus) for statistics in found]
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
        return estimated(of, tested, rng, str(run.folder))
    values = scalars(run, metric)
    return over_seeds(values, np.repeat(values[:, None], RESAMPLES, axis=1), rng)
