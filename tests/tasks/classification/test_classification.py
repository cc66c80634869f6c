"""Classifiers of texts beyond what all kinds have in common: pairs of texts, priors, and their settings."""

import math
from collections import Counter

import pytest
import torch

from replications.self_attentive.prior import Prior
from replications.self_attentive.settings import PriorConfig
from shared.config import build
from shared.errors import ReplicationError
from shared.tasks.classification.corpus import PreparedClassification
from shared.tasks.classification.settings import ClassificationRun, check_texts
from shared.tasks.settings import check_model
from tests.tasks import in_process
from tests.tasks.classification.toy_classifiers import SETS, Toy, ToyConfig, write_dataset
from tests.tasks.in_process import examples_of, judge, paper, run, train, weights_of

CORPUS = {
    "dataset": "toy", "tokenizer": {"kind": "words", "size": 24}, "evidence": "evidence", "test": ["test", "hard"],
}  # fmt: skip
TASK = {
    "corpus": CORPUS,
    "model": {"size": 8, "rows": 2, "penalty": 0.1},
    "training": {"updates": 60, "batch": {"sentences": 10}, "optimizer": {"name": "adam", "learning_rate": 0.05},
                 "validate_every": 20},
    "evaluation": {"heatmaps": 2},
    "seeds": [3, 4],
}  # fmt: skip


def reading(*, pairs):
    return paper(
        "classification", ToyConfig, Toy, routes={"prior": PriorConfig}, runners={"prior": Prior()},
        SUITS=lambda section, run, where: check_texts(run, where, pairs=pairs),
    )  # fmt: skip


REPLICATION = reading(pairs=False)


def prepare(folder, **changes):
    in_process.prepared("classification", CORPUS | changes, folder, folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_dataset(folder)
    return prepare(folder)


def config(model, **sections):
    """A variant whose own ``model`` section lies over the task's."""
    value = {"task": "words", **TASK, **sections, "model": TASK["model"] | model}
    return build(ClassificationRun, value, where="test").at("toy/params.yaml", "variant", model)


def test_the_checkpoint_that_the_evaluation_names_is_judged(prepared, tmp_path):
    best, last = (config({}, seeds=[3], evaluation={"checkpoint": name}) for name in ("best", "last"))
    train(REPLICATION, best, prepared, tmp_path)
    weights = [weights_of(tmp_path, 3, name)["model.embedding.weight"] for name in ("best", "last")]
    assert not torch.equal(*weights)  # or the test shows nothing
    losses = [judge(REPLICATION, each, prepared, tmp_path)[0]["cross_entropy"] for each in (best, last)]
    assert losses[0] != losses[1]


def test_pairs_of_texts(tmp_path):
    texts = ("premise", "hypothesis")
    write_dataset(tmp_path, texts)
    corpus = {"texts": list(texts), "evidence": None, "max_tokens": 7}
    prepared = prepare(tmp_path, **corpus)
    of_pairs = config({}, corpus=CORPUS | corpus, seeds=[3])
    with pytest.raises(ReplicationError, match="reads one text at once, but its corpus has 2"):
        check_model(REPLICATION.settings, of_pairs)
    pairwise = reading(pairs=True)
    check_model(pairwise.settings, of_pairs)
    (metrics,) = run(pairwise, of_pairs, prepared, tmp_path)
    assert metrics["accuracy"] > 80
    assert "evidence_mass" not in metrics
    assert max(example["length"] for example in examples_of(tmp_path, 3)) == 14


def shares(labels):
    """With one more of each of the two classes."""
    return {name: (labels.count(name) + 1) / (len(labels) + 2) for name in ("bad", "good")}


@pytest.mark.parametrize("prior", ["overall", "set"])
def test_priors_are_shares_counted_by_hand(prior, prepared, tmp_path):
    variant = config({"prior": prior}, seeds=[1])
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
    prepared = prepare(tmp_path)
    with pytest.raises(ReplicationError, match=r"the train texts in .* have no keys .*use 'prior: overall'"):
        judge(REPLICATION, config({"prior": "set"}), prepared, tmp_path / "set")
    metrics, _ = judge(REPLICATION, config({"prior": "overall"}), prepared, tmp_path / "all")
    assert 0 < metrics["accuracy"] < 100
