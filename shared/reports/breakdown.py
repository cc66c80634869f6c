"""A corpus measure by bins of a covariate, such as BLEU by source length, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.claims.results import RunResults
from shared.claims.sampling import per_example, scalars
from shared.claims.statistics import Estimate, generator, on_examples, over_seeds, resample
from shared.metrics.measures import measure
from shared.metrics.quantities import Example, Measure

RESAMPLES = 2_000
SPLITS = ("test", "test_long")
"""What a breakdown is of: the test split and the one that continues it with longer sentences. Other splits, with noise
or of another year, would blur it."""
Bin = tuple[int, int]


@dataclass(frozen=True)
class BinScore:
    """The measure in one bin.

    Attributes:
        bin: inclusive range of the covariate.
        centre: mean covariate of its examples.
        n: examples in it.
        value, interval: of the mean over seeds, 95 %, over examples and seeds.
    """

    bin: Bin
    centre: float
    n: int
    value: float
    interval: tuple[float, float]


def round_bins(values: Sequence[float], *, fewest: int = 20) -> list[Bin]:
    """Bins of a round width (5 up to 30, else 10) over positive integers; a thin one joins the one before.

    Args:
        values: the covariate of every example.
        fewest: examples that a bin must hold.
    """
    top = int(max(values))
    width = 5 if top <= 30 else 10
    bins: list[Bin] = []
    for low in range(1, top + 1, width):
        count = sum(low <= value < low + width for value in values)
        if bins and count < fewest:
            bins[-1] = (bins[-1][0], low + width - 1)
        else:
            bins.append((low, low + width - 1))
    return bins


def having(runs: Sequence[RunResults], name: str) -> list[RunResults]:
    """The runs whose test examples carry the field ``name``."""
    return [run for run in runs if any(name in rows[0] for rows in run.examples.values() if rows)]


def broken_down(run: RunResults, seed: int) -> list[Example]:
    """The examples of a seed that breakdowns are of (:data:`SPLITS`), in an order that all variants share."""
    return [row for row in run.examples[seed] if row["split"] in SPLITS]


def score_by_bin(run: RunResults, of: Measure, covariate: str, bins: Sequence[Bin]) -> list[BinScore]:
    """Evaluate ``of`` on the examples of every bin that has any.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    scores = []
    examples = [broken_down(run, seed) for seed in run.seeds]
    reference = examples[0]
    for low, high in bins:
        chosen = [index for index, row in enumerate(reference) if low <= row[covariate] <= high]
        if not chosen:
            continue
        taken = [[rows[i] for i in chosen] for rows in examples]
        estimate = estimated(of, taken, generator(run.variant, of.title, str(low)), str(run.folder))
        centre = float(np.mean([reference[index][covariate] for index in chosen]))
        scores.append(BinScore((low, high), centre, len(chosen), estimate.value, estimate.interval()))
    return scores


def estimated(of: Measure, examples: Sequence[Sequence[Example]], rng: np.random.Generator, where: str) -> Estimate:
    """A measure of examples as mean over the seeds, with draws over examples and seeds.

    Args:
        of: the measure.
        examples: of each seed, the same ones in the same order.
        rng: source of the draws.
        where: the examples come from, for the error.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    assert of.corpus is not None, "a breakdown needs a measure of examples"
    statistics = [on_examples(per_example(of, rows, where), of.corpus) for rows in examples]
    values, draws = resample(statistics, np.zeros(len(examples[0]), dtype=np.int64), rng, RESAMPLES)
    return over_seeds(values, draws, rng)


def estimate(run: RunResults, metric: str) -> Estimate | None:
    """A metric on the test split, mean over seeds, with its draws; None where the run has none.

    Of a metric that is one number per run only the seeds vary, and nothing does if there is but one.
    """
    if metric not in run.mean:
        return None
    of, rng = measure(metric), generator(run.variant, metric)
    tested = [[row for row in rows if row["split"] == "test"] for rows in run.examples.values()]
    if tested and of.of(tested[0]) is not None:
        return estimated(of, tested, rng, str(run.folder))
    values = scalars(run, metric)
    return over_seeds(values, np.repeat(values[:, None], RESAMPLES, axis=1), rng)


def alignment_offsets(run: RunResults) -> dict[int, float]:
    """Share of aligned target words by where attention peaked: source position minus the nearest gold one.

    Returns:
        offset to share, over all seeds; empty where the examples carry no alignments.
    """
    counts: Counter[int] = Counter()
    for rows in run.examples.values():
        for row in rows:
            for offset, count in (row.get("alignment") or {}).get("offsets", {}).items():
                counts[int(offset)] += count
    total = sum(counts.values())
    return {offset: count / total for offset, count in sorted(counts.items())}
