"""Measures of models of separate sequences, by hand."""

import math

import numpy as np
import pytest

from shared.metrics.registry import corpus_values, measure

BIT = math.log(2)


def sequence(*, unit="residue", nll=8.0, tokens=4, hits=3, **more):
    return {
        "id": "test-0", "split": "test", "unit": unit, "nll": nll, "tokens": tokens, "units": tokens, "length": 5,
        "hits": hits, **more,
    }  # fmt: skip


def picture(**more):
    return {name: value for name, value in sequence(unit="pixel", **more).items() if name != "hits"}


def test_symbols_have_a_perplexity_and_bits_and_an_accuracy():
    values = corpus_values([sequence(), sequence(nll=1.0, tokens=6, hits=0)])
    assert values == {
        "perplexity": pytest.approx(math.exp(9 / 10)), "bits": pytest.approx(9 / 10 / BIT),
        "token_accuracy": pytest.approx(30.0),
    }  # fmt: skip


def test_pixels_have_bits_alone():
    assert corpus_values([picture(nll=8 * BIT), picture(nll=4 * BIT)]) == {"bits": pytest.approx(12 / 8)}


def test_made_up_sequences_are_right_or_wrong_as_a_whole():
    wrong, right = sequence(unit="symbol"), sequence(unit="symbol", hits=4)
    assert corpus_values([wrong, wrong, right, wrong])["sequence_accuracy"] == 25.0


def test_the_baseline_is_judged_beside_the_model():
    values = corpus_values([sequence(baseline=[4.0, 1]), sequence(baseline=[2.0, 3])])
    assert values["baseline_accuracy"] == 50.0
    assert values["baseline_perplexity"] == pytest.approx(math.exp(6 / 8))


def test_predictions_that_are_no_number_are_counted_where_they_may_be():
    assert corpus_values([sequence(undefined=0), sequence(undefined=2)])["undefined"] == 25.0
    assert "undefined" not in corpus_values([sequence()])


def test_swapped_models_are_measures_of_their_own():
    rows = [sequence(swapped={"positive": [16.0, 1], "relu": [8.0, 3]}), sequence(split="far")]
    values = corpus_values(rows[:1])
    assert values["perplexity@positive"] == pytest.approx(math.exp(4))
    assert values["perplexity@relu"] == values["perplexity"]
    assert (values["token_accuracy@positive"], values["token_accuracy@relu"]) == (25.0, 75.0)
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
