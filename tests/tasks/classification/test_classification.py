"""Classifiers of texts beyond what all kinds have in common: pairs of texts, priors, and their settings."""

import math
from collections import Counter

import pytest
import torch

from replications.self_attentive.prior import Prior
from replications.self_attentive.settings import PriorConfig
from shared.errors import ReplicationError
from shared.tasks.classification.corpus import PreparedClassification
from shared.tasks.classification.settings import check_texts
from shared.tasks.settings import check_model
from tests.tasks import in_process
from tests.tasks.classification.toy_classifiers import SETS, Toy, ToyConfig, write_dataset
from tests.tasks.in_process import examples_of, judge, paper, run_config, train, weights_of

CORPUS = {"tokenizer": {"kind": "words", "size": 24}, "evidence": "evidence", "test": ["test", "hard"]}
TRAINING = {
    "updates": 60, "batch": {"sentences": 10}, "optimizer": {"name": "adam", "learning_rate": 0.05},
    "validate_every": 20,
}  # fmt: skip


def reading(*, pairs):
    return paper(
        "classification", ToyConfig, Toy, routes={"prior": PriorConfig}, runners={"prior": Prior()},
        SUITS=lambda section, run, where: check_texts(run, where, pairs=pairs),
    )  # fmt: skip


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
    with pytest.raises(ReplicationError, match="reads one text at once, but its corpus has 2"):
        check_model(REPLICATION.settings, of_pairs)
    check_model(reading(pairs=True).settings, of_pairs)


def shares(labels):
    """With one more of each of the two classes."""
    return {name: (labels.count(name) + 1) / (len(labels) + 2) for name in ("bad", "good")}


@pytest.mark.parametrize("prior", ["overall", "set"])
def test_priors_are_shares_counted_by_hand(prior, prepared, tmp_path):
    variant = config({"prior": prior}, seeds=(1,))
    ((record, parameters),) = train(REPLICATION, variant, prepared, tmp_path)
    assert (record.updates, parameters) == (0, 0)
    (metrics,) = judge(REPLICATION, variant, prepared, tmp_path)
    text = PreparedClassification.load(prepared)
    labels = [text.classes[label] for label in text.split("train").labels]
    groups = [key.split("/")[0] for key in text.keys("train")]
    by_set = {group: shares([a for a, b in zip(labels, groups, strict=True) if b == group]) for group in SETS}
    assert by_set["films"]["good"] > 0.5 > by_set["shops"]["good"]
    examples = examples_of(tmp_path, 1)
    assert Counter(example["set"] for example in examples).keys() == {*SETS, "books"}
    for example in examples:
        expected = shares(labels) if prior == "overall" else by_set.get(example["set"], shares(labels))
        assert example["cross_entropy"] == pytest.approx(-math.log(expected[example["label"]]))
        assert example["predicted"] == max(expected, key=expected.get)
        assert example["correct"] == (example["predicted"] == example["label"])
        assert not example.keys() & {"rows", "evidence", "deletion"}
    test = [example["correct"] for example in examples if example["split"] == "test"]
    assert metrics["accuracy"] == pytest.approx(100 * sum(test) / len(test), abs=1e-5)
    assert "hard.cross_entropy" in metrics


def test_sets_need_keys(tmp_path):
    write_dataset(tmp_path, keys=False)
    prepared = in_process.prepared("classification", CORPUS, tmp_path, tmp_path / "out")[1].folder
    with pytest.raises(ReplicationError, match=r"the train texts in .* have no keys .*use 'prior: overall'"):
        judge(REPLICATION, config({"prior": "set"}), prepared, tmp_path / "set")
    (metrics,) = judge(REPLICATION, config({"prior": "overall"}), prepared, tmp_path / "all")
    assert 0 < metrics["accuracy"] < 100
