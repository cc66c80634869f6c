"""Measures of language models and of models of separate sequences, by hand; and what intervals need of them all."""

import math

import numpy as np
import pytest

from shared.metrics.registry import corpus_values, measure

BIT = math.log(2)


def block(*, unit="character", nll=8 * BIT, tokens=4, units=4.0, **more):
    own = {"id": "test-0", "split": "test", "unit": unit, "nll": nll, "tokens": tokens, "units": units}
    return own | more


POSITIONS = [[6 * BIT, 2], [2 * BIT, 1], [0.0, 0], [0.0, 0], *[[1 * BIT, 1]] * 3, [1 * BIT, 2]]


def test_characters_have_bits_and_words_a_perplexity_and_neither_has_both():
    characters = corpus_values([block(), block(nll=4 * BIT, tokens=2, units=2.0)])
    assert characters == {"bits": pytest.approx(12 / 6)}
    words = corpus_values([block(unit="word"), block(unit="word", nll=4 * BIT, tokens=2, units=2.0)])
    assert words == {"word_perplexity": pytest.approx(4.0)}
    assert corpus_values([block(unit="byte")]).keys() == {"bits"}


def test_losses_are_per_unit_whatever_the_symbols_are():
    pieces = corpus_values([block(unit="word", units=2.0, positions=POSITIONS, memories={"16": 6 * BIT})])
    assert pieces["word_perplexity"] == pytest.approx(2.0 ** (8 / 2))
    assert pieces["word_perplexity@16"] == pytest.approx(2.0 ** (6 / 2))
    assert pieces["bits_start"] == pytest.approx(3.0 / 0.5)  # half a word a symbol


def test_the_start_of_segments_is_told_from_the_rest():
    values = corpus_values([block(positions=POSITIONS), block(positions=POSITIONS)])
    assert values["bits_start"] == pytest.approx(3.0)
    assert values["bits_rest"] == pytest.approx(6 / 6)
    assert values["start_excess"] == pytest.approx(3.0 - 4 / 5)
    assert "bits_start" not in corpus_values([block()])


def test_a_memory_saves_what_its_bits_differ_by():
    blocks = [block(memories={"16": 7 * BIT, "64": 4 * BIT}), block(memories={"16": 5 * BIT, "64": 6 * BIT})]
    values = corpus_values(blocks)
    assert (values["bits@16"], values["bits@64"]) == (pytest.approx(12 / 8), pytest.approx(10 / 8))
    assert measure("bits_saved@16-64").of(blocks) == pytest.approx(2 / 8)
    assert measure("bits_saved@64-16").of(blocks) == pytest.approx(-2 / 8)
    assert measure("bits_saved@16-32").of(blocks) is None
    assert measure("bits@32").of(blocks) is None


def test_recalls_are_counted_by_their_distance():
    own = {"8": [3 * BIT, 2, 1]}, {"8": [1 * BIT, 2, 2], "128": [5 * BIT, 1, 0]}
    blocks = [block(), *(block(recalls=recalls) for recalls in own)]
    values = corpus_values(blocks)
    assert values["recall_bits@8"] == pytest.approx(1.0)
    assert values["recalled@8"] == pytest.approx(75.0)
    assert (values["recall_bits@128"], values["recalled@128"]) == (pytest.approx(5.0), 0.0)
    assert [*values].index("recalled@8") < [*values].index("recalled@128")
    assert measure("recalled@16").of(blocks) is None


def sequence(*, nll=8.0, hits=3, **more):
    own = {"id": "test-0", "split": "test", "unit": "residue", "nll": nll, "tokens": 4, "units": 4, "length": 5}
    return own | {"hits": hits} | more


def test_swapped_models_are_measures_of_their_own():
    rows = [sequence(swapped={"positive": [16.0, 1], "relu": [8.0, 3]}), sequence(split="far")]
    values = corpus_values(rows[:1])
    assert measure("accuracy_lost@positive").of(rows) == 50.0
    assert measure("accuracy_lost@relu").of(rows) == 0.0
    assert measure("token_accuracy@other").of(rows) is None
    assert measure("accuracy_lost@other").of(rows) is None
    assert not [name for name in values if name.startswith("accuracy_lost")]


def random_block(rng):
    positions = (rng.uniform(0, 9, (8, 2)) + 1).tolist()
    return block(nll=float(rng.uniform(1, 9)), positions=positions, memories={"4": 2.0})


def random_sequence(rng):
    more = {"swapped": {"a": [3.0, 2]}, "baseline": [9.0, 1]}
    return sequence(nll=float(rng.uniform(1, 9)), hits=int(rng.integers(5)), **more)


@pytest.mark.parametrize(("drawn", "more"), [(random_block, []), (random_sequence, ["accuracy_lost@a"])])
def test_sums_over_examples_are_all_that_is_needed(drawn, more):
    rng = np.random.default_rng(1)
    rows = [drawn(rng) for _ in range(5)]
    names = [*corpus_values(rows), *more]
    assert {"bits", "perplexity"} & {*names}
    for name in names:
        of = measure(name)
        sums = np.array([of.statistics(row) for row in rows]).sum(axis=0)
        assert of.corpus(np.stack([sums, 3 * sums])) == pytest.approx([of.of(rows)] * 2)
