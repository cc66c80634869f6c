"""Measures of models of separate sequences that their evaluation does not compute, and what intervals need of all."""

import numpy as np
import pytest

from shared.metrics.registry import corpus_values, measure


def sequence(*, unit="residue", nll=8.0, tokens=4, hits=3, **more):
    return {
        "id": "test-0", "split": "test", "unit": unit, "nll": nll, "tokens": tokens, "units": tokens, "length": 5,
        "hits": hits, **more,
    }  # fmt: skip


def test_swapped_models_are_measures_of_their_own():
    rows = [sequence(swapped={"positive": [16.0, 1], "relu": [8.0, 3]}), sequence(split="far")]
    values = corpus_values(rows[:1])
    assert measure("accuracy_lost@positive").of(rows) == 50.0
    assert measure("accuracy_lost@relu").of(rows) == 0.0
    assert measure("token_accuracy@other").of(rows) is None
    assert measure("accuracy_lost@other").of(rows) is None
    assert not [name for name in values if name.startswith("accuracy_lost")]


def test_sums_over_sequences_are_all_that_is_needed():
    rng = np.random.default_rng(1)
    rows = [
        sequence(nll=float(rng.uniform(1, 9)), hits=int(rng.integers(5)), swapped={"a": [3.0, 2]}, baseline=[9.0, 1])
        for _ in range(5)
    ]  # fmt: skip
    for name in (*corpus_values(rows), "accuracy_lost@a"):
        of = measure(name)
        sums = np.array([of.statistics(row) for row in rows]).sum(axis=0)
        assert of.corpus(np.stack([sums, 3 * sums])) == pytest.approx([of.of(rows)] * 2)
