"""Classifiers of texts beyond what all kinds have in common: pairs of texts, and which weights are judged."""

import pytest
import torch

from shared.tasks.classification.settings import check_texts
from shared.tasks.settings import check_model
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.classification.toy_classifiers import Toy, ToyConfig, write_dataset
from tests.tasks.in_process import judge, paper, run_config, train, weights_of

CORPUS = {"tokenizer": {"kind": "words", "size": 24}, "evidence": "evidence", "test": ["test", "hard"]}
TRAINING = {
    "updates": 60, "batch": {"sentences": 10}, "optimizer": {"name": "adam", "learning_rate": 0.05},
    "validate_every": 20,
}  # fmt: skip


def reading(*, pairs):
    return paper(
        "classification", ToyConfig, Toy, suits=lambda section, run, where: check_texts(run, where, pairs=pairs)
    )


REPLICATION = reading(pairs=False)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_dataset(folder)
    return in_process.prepared("classification", CORPUS, folder, folder / "out")[1].folder


def config(model, corpus=CORPUS, seeds=(3,), **sections):
    """A variant whose own ``model`` section lies over the task's."""
    whole = {"size": 8, "rows": 2, "penalty": 0.1} | model
    run = run_config("classification", corpus, model=whole, training=TRAINING, seeds=list(seeds), **sections)
    return run.at("toy/params.yaml", "variant", model)


def test_the_checkpoint_that_the_evaluation_names_is_judged(prepared, tmp_path):
    best, last = (config({}, evaluation={"checkpoint": name}) for name in ("best", "last"))
    train(REPLICATION, best, prepared, tmp_path)
    weights = [weights_of(tmp_path, 3, name)["model.embedding.weight"] for name in ("best", "last")]
    assert not torch.equal(*weights)  # or the test shows nothing
    losses = [judge(REPLICATION, each, prepared, tmp_path)[0]["cross_entropy"] for each in (best, last)]
    assert losses[0] != losses[1]


def test_pairs_of_texts_are_for_networks_that_read_two():
    of_pairs = config({}, CORPUS | {"texts": ["premise", "hypothesis"], "evidence": None})
    assert_refused("reads one text at once, but its corpus has 2", check_model, REPLICATION.settings, of_pairs)
    check_model(reading(pairs=True).settings, of_pairs)
