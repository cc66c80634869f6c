"""Scores by source length, with intervals, and where attention peaks relative to true alignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.claims.results import RunResults
from shared.claims.statistics import generator
from shared.metrics.quantities import Example, Measure
from shared.reports.estimates import estimated, having

SPLITS = ("test", "test_long")
"""The splits of a breakdown: the test split, and the one that continues it with longer sentences. Other splits, with
noise or of another year, would blur the breakdown."""
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


def length_bins(run: RunResults) -> list[Bin]:
    """Bins of the source lengths of a variant's test sentences, which all variants of its task share."""
    return round_bins([row["source_length"] for row in _tested(run, run.seeds[0])])


def scored_by(runs: Sequence[RunResults]) -> tuple[str, list[RunResults]]:
    """The name of the measure that is shown by length, and the runs that have it: the brackets' F1 of trees, else BLEU.

    Args:
        runs: variants of one task.
    """
    if trees := having(runs, "brackets"):
        return "bracket_f1", trees
    return "bleu", having(runs, "bleu")


def score_by_length(run: RunResults, of: Measure, bins: Sequence[Bin]) -> list[BinScore]:
    """Evaluate ``of`` on the test sentences of every bin of source lengths that has any.

    Raises:
        ReplicationError: the examples carry nothing to compute the measure from.
    """
    scores = []
    examples = [_tested(run, seed) for seed in run.seeds]
    lengths = [row["source_length"] for row in examples[0]]
    for low, high in bins:
        chosen = [index for index, length in enumerate(lengths) if low <= length <= high]
        if not chosen:
            continue
        taken = [[rows[i] for i in chosen] for rows in examples]
        estimate = estimated(of, taken, generator(run.variant, of.title, str(low)), str(run.folder))
        centre = float(np.mean([lengths[index] for index in chosen]))
        scores.append(BinScore((low, high), centre, len(chosen), estimate.value, estimate.interval()))
    return scores


def _tested(run: RunResults, seed: int) -> list[Example]:
    """The examples of a seed in :data:`SPLITS`, in an order that all variants share."""
    return [row for row in run.examples[seed] if row["split"] in SPLITS]


def also_longer(runs: Sequence[RunResults]) -> str:
    """What to add to a caption where the test split is continued with longer sentences; else nothing."""
    longer = any(row["split"] == SPLITS[1] for run in runs for row in run.examples.get(run.seeds[0], []))
    return (
        f" The longer sentences of the split {SPLITS[1]} are included in what is shown by length and by offset."
        if longer
        else ""
    )


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
