"""Models of sequences beyond what all kinds have in common: corpora of three sorts, swapped weights, divergence."""

import itertools

import numpy as np
import pytest
import torch

from shared.tasks.batches import training_order
from tests.refused import assert_refused
from tests.tasks.in_process import judge, paper, run, run_config, train
from tests.tasks.sequences.toy_sequence_models import COUNTS, Toy, ToyConfig

COPIES = {
    "of": "copies", "dataset": "toy", "shortest": 2, "longest": 4, "test": ["test", "test_other"],
    "sequences": {"train": 90, "valid": 20, "test": 15, "test_other": 10},
}  # fmt: skip
MASKED = {"of": "proteins", "dataset": "toy", "length": 20, "masked": True}
TRAINING = {
    "updates": 40, "batch": {"sentences": 10}, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.03},
}  # fmt: skip
REPLICATION = paper("sequences", ToyConfig, Toy)


@pytest.fixture
def copies(prepared):
    """The folder of the prepared copies."""
    return prepared(COPIES).folder


def config(corpus=COPIES, training=TRAINING, **sections):
    return run_config("sequences", corpus, model={"size": 12}, training=training, **{"seeds": [3, 4]} | sections)


def test_the_weights_are_judged_in_other_models_too(copies, tmp_path):
    """What these draw for themselves is the same every time, and another for another seed."""
    swapped = config(evaluation={"swapped": {"same": {}, "noisy": {"noise": 2.0}}})
    metrics = run(REPLICATION, swapped, copies, tmp_path)
    for scores in metrics:
        assert scores["perplexity@same"] == scores["perplexity"]
        assert scores["perplexity@noisy"] > scores["perplexity"]
    assert metrics[0]["perplexity@noisy"] != metrics[1]["perplexity@noisy"]
    assert judge(REPLICATION, swapped, copies, tmp_path) == metrics


def test_a_model_with_other_weights_cannot_take_the_place(copies, tmp_path):
    wider = config(training={}, seeds=[3], evaluation={"swapped": {"wide": {"size": 13}}})
    train(REPLICATION, wider, copies, tmp_path)
    assert_refused(r"swapped\.wide makes a model whose weights are others", judge, REPLICATION, wider, copies, tmp_path)


def test_what_is_masked_changes_from_batch_to_batch_and_with_the_seed(prepared):
    text, training, scored = prepared(MASKED), config(corpus=MASKED).training, []
    train = text.split("train")
    for seed, number in ((3, 0), (3, 4), (4, 0)):
        order = training_order(train, training.batch, seed)
        batch = next(text.batches(training, seed)(number))
        assert torch.equal(batch.scored, train.batch(next(order(start=number)), (seed, number)).scored)
        scored.append(train.batch(np.arange(10), (seed, number)).scored)
    assert not any(torch.equal(*pair) for pair in itertools.combinations(scored, 2))


def test_validation_has_every_sequence_once_and_always_masks_the_same(prepared):
    text = prepared(MASKED)
    batches = text.valid(config(corpus=MASKED).training)
    assert sum(len(batch.inputs) for batch in batches) == COUNTS["valid"]
    again = text.valid(config(corpus=MASKED, evaluation={"tokens": 7}).training)
    for one, other in zip(batches, again, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.scored, other.scored)
