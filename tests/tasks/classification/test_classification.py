"""Tasks of kind "classification" through the stages: a toy network on one text and on pairs, and priors."""

import csv
import gzip
import json
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pydantic import Field
from torch import nn

from shared.config import Strict, build
from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.config import ScaleFile
from shared.tasks.classification.corpus import PreparedClassification
from shared.tasks.classification.priors import Prior, prior_route
from shared.tasks.classification.protocol import Classified
from shared.tasks.classification.settings import ClassificationRun, ClassifiedCorpusConfig, PriorConfig, check_texts
from shared.tasks.classification.task import Classification
from shared.tasks.routed import Routed
from shared.tasks.translation.task import Translation
from tests.pipeline.scratch import toy_project

SETS = ("films", "shops")
CORPUS = {
    "dataset": "toy", "tokenizer": {"kind": "words", "size": 24}, "evidence": "evidence", "test": ["test", "hard"],
}  # fmt: skip
TASK = {
    "kind": "classification",
    "corpus": CORPUS,
    "model": {"size": 8, "rows": 2, "penalty": 0.1},
    "training": {"updates": 60, "batch": {"sentences": 10}, "optimizer": {"name": "adam", "learning_rate": 0.05},
                 "validate_every": 20},
    "evaluation": {"heatmaps": 2},
    "seeds": [3, 4],
}  # fmt: skip
VARIANTS = {
    "attends": {"task": "words"},
    "short": {"task": "words", "training": {"updates": 2, "validate_every": 1}, "seeds": [3]},
    "overall": {"task": "words", "model": {"prior": "overall"}, "seeds": [1]},
    "by-set": {"task": "words", "model": {"prior": "set"}, "seeds": [1]},
    "other": {"task": "words", "kind": "translation"},
}


class ToyConfig(Strict):
    size: int = Field(ge=1)
    rows: int = Field(ge=1)
    penalty: float


class Toy(nn.Module):
    """Every text, and of pairs both, as the sum of ``rows`` weighted means of its words."""

    def __init__(self, config, vocabulary, classes):
        super().__init__()
        self.embedding, self.penalty = nn.Embedding(vocabulary, config.size), config.penalty
        self.score = nn.Linear(config.size, config.rows)
        self.dropout, self.classifier = nn.Dropout(0.1), nn.Linear(config.size, classes)

    def forward(self, texts, masks):
        read = [self.embedding(text) for text in texts]
        scores = (self.score(words).mT for words in read)
        attention = tuple(
            score.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
            for score, mask in zip(scores, masks, strict=True)
        )
        summed = sum((a @ words).sum(1) for a, words in zip(attention, read, strict=True))
        auxiliary = self.penalty * sum(a.square().sum((1, 2)) for a in attention)
        return Classified(self.classifier(self.dropout(summed)), attention, auxiliary)


def reading(*, pairs):
    return Classification(ToyConfig, Toy, suits=lambda section, run, where: check_texts(run, where, pairs=pairs))


OWN = reading(pairs=False)
REPLICATION = Routed(OWN, routes={"prior": prior_route}, sections={"prior": PriorConfig})


def write_dataset(folder, texts=("text",), keys=True):
    """Texts of which one word tells the class; films are more often good, shops bad, and the test has a third set."""
    choose = random.Random(5)
    for split, count in {"train": 60, "valid": 20, "test": 30, "hard": 10}.items():
        columns = {name: [] for name in (*texts, "label", "evidence", "key")}
        for i in range(count):
            group = choose.choice(SETS if split == "train" else (*SETS, "books"))
            label = choose.choices(("bad", "good"), (1, 3) if group == "films" else (2, 1))[0]
            lines = [[f"w{choose.randrange(12)}" for _ in range(choose.randrange(5, 9))] for _ in texts]
            place = choose.randrange(len(lines[-1]))
            lines[-1][place] = label[::-1]
            for name, line in zip(texts, lines, strict=True):
                columns[name].append(" ".join(line))
            columns["label"].append(label)
            columns["evidence"].append(str(place))
            columns["key"].append(f"{group}/{i}")
        for name, lines in columns.items():
            if keys or name != "key":
                (folder / f"{split}.{name}").write_text("".join(f"{line}\n" for line in lines))


def prepare(folder, **changes):
    out = folder / "out"
    out.mkdir()
    REPLICATION.prepare(build(ClassifiedCorpusConfig, CORPUS | changes, where="test"), folder, out)
    return out


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_dataset(folder)
    return prepare(folder)


@pytest.fixture
def project(prepared, tmp_path, monkeypatch):
    """A project with one prepared task of this paper."""
    return toy_project(tmp_path, REPLICATION, monkeypatch, "words", TASK, VARIANTS, prepared)


def run(variant):
    for stage in (stages.train_stage, stages.evaluate_stage):
        stage(f"toy.{variant}", "smoke")


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text())


def examples_of(folder, seed):
    with gzip.open(folder / "evaluation" / f"seed{seed}" / "examples.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def weights_of(folder, seed, name="last"):
    checkpoint = folder / "train" / f"seed{seed}" / "checkpoints" / f"{name}.ckpt"
    return torch.load(checkpoint, weights_only=True)["state_dict"]


def test_it_goes_through_the_stages_and_learns(project, capsys):
    folder = project / "attends"
    run("attends")
    stages.train_stage("toy.attends", "smoke")
    assert "toy.attends seed 3: finished before, kept." in capsys.readouterr().out
    metrics = metrics_of(folder)
    assert metrics["seeds"].keys() == {"3", "4"}
    assert "ensemble" not in metrics
    assert metrics["token"] == "text"
    assert metrics["mean"].keys() >= {"accuracy", "cross_entropy", "hard.accuracy", "evidence_mass", "deletion_effect"}
    assert metrics["mean"]["accuracy"] > 95
    record = json.loads((folder / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == 60
    assert record["parameters"]["kind"] == "classification"
    assert record["parameter_count"] == sum(value.numel() for value in weights_of(folder, 3).values())
    assert (folder / "evaluation" / "seed3" / "attention.npz").exists()
    with (folder / "curve.csv").open() as file:
        assert [int(row["update"]) for row in csv.DictReader(file)] == [20, 40, 60]


def test_a_seed_decides_everything(project):
    for attempt in range(2):
        stages.train_stage("toy.attends", "smoke")
        (project / "attends").rename(project / f"attempt-{attempt}")
    first, again, other = (
        weights_of(project / f"attempt-{attempt}", seed) for attempt, seed in ((0, 3), (1, 3), (0, 4))
    )
    assert all(torch.equal(again[name], value) for name, value in first.items())
    assert not any(torch.equal(other[name], value) for name, value in first.items())


def test_the_checkpoint_that_the_evaluation_names_is_judged(project):
    run("attends")
    best = [example["cross_entropy"] for example in examples_of(project / "attends", 3)]
    home = Path("replications") / "toy" / "smoke.yaml"
    content = json.loads(home.read_text())
    content["tasks"]["words"]["evaluation"]["checkpoint"] = "last"
    home.write_text(json.dumps(content))
    stages.evaluate_stage("toy.attends", "smoke")
    last = [example["cross_entropy"] for example in examples_of(project / "attends", 3)]
    weights = [weights_of(project / "attends", 3, name)["model.embedding.weight"] for name in ("best", "last")]
    assert not torch.equal(*weights)  # or the test shows nothing
    assert best != last


def test_pairs_of_texts(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    texts = ("premise", "hypothesis")
    write_dataset(folder, texts)
    corpus = {"texts": list(texts), "evidence": None, "max_tokens": 7}
    prepared = prepare(folder, **corpus)
    task = TASK | {"corpus": CORPUS | corpus}
    of_pairs = replace(REPLICATION, default=reading(pairs=True))
    runs = toy_project(tmp_path, of_pairs, monkeypatch, "words", task, VARIANTS, prepared)
    run("attends")
    metrics = metrics_of(runs / "attends")["mean"]
    assert metrics["accuracy"] > 80
    monkeypatch.setattr(stages, "load_replication", lambda paper: REPLICATION)
    with pytest.raises(ReplicationError, match="reads one text at once, but its corpus has 2"):
        run("attends")
    assert "evidence_mass" not in metrics
    lengths = [example["length"] for example in examples_of(runs / "attends", 3)]
    assert max(lengths) == 14


def shares(labels):
    """With one more of each of the two classes."""
    return {name: (labels.count(name) + 1) / (len(labels) + 2) for name in ("bad", "good")}


@pytest.mark.parametrize("variant", ["overall", "by-set"])
def test_priors_are_shares_counted_by_hand(variant, project, prepared):
    run(variant)
    text = PreparedClassification.load(prepared)
    labels = [text.classes[label] for label in text.split("train").labels]
    groups = [key.split("/")[0] for key in text.keys("train")]
    found = {group: shares([a for a, b in zip(labels, groups, strict=True) if b == group]) for group in SETS}
    assert found["films"]["good"] > 0.5 > found["shops"]["good"]
    examples = examples_of(project / variant, 1)
    assert Counter(example["set"] for example in examples).keys() == {*SETS, "books"}
    for example in examples:
        expected = shares(labels) if variant == "overall" else found.get(example["set"], shares(labels))
        assert example["cross_entropy"] == pytest.approx(-math.log(expected[example["label"]]))
        assert example["predicted"] == max(expected, key=expected.get)
        assert example["correct"] == (example["predicted"] == example["label"])
        assert not example.keys() & {"rows", "evidence", "deletion"}
    metrics = metrics_of(project / variant)["mean"]
    test = [example["correct"] for example in examples if example["split"] == "test"]
    assert metrics["accuracy"] == pytest.approx(100 * sum(test) / len(test), abs=1e-5)
    assert "hard.cross_entropy" in metrics
    record = json.loads((project / variant / "train" / "seed1" / "run.json").read_text())
    assert (record["updates"], record["parameter_count"]) == (0, 0)


def test_priors_and_networks_judge_the_same_examples(project):
    for variant in ("short", "by-set"):
        run(variant)
    read, known = examples_of(project / "short", 3), examples_of(project / "by-set", 1)
    for key in ("id", "key", "length", "label"):
        assert [example[key] for example in read] == [example[key] for example in known]


def test_sets_need_keys(tmp_path):
    write_dataset(tmp_path, keys=False)
    prepared = prepare(tmp_path)
    with pytest.raises(ReplicationError, match=r"the train texts in .* have no keys .*use 'prior: overall'"):
        REPLICATION.evaluate(config({"prior": "set"}), prepared=prepared, trained=[], out=tmp_path / "set")
    metrics = REPLICATION.evaluate(config({"prior": "overall"}), prepared=prepared, trained=[], out=tmp_path / "all")
    assert 0 < metrics["accuracy"] < 100


def config(model, **sections):
    """A variant whose own ``model`` section lies over the task's."""
    value = {"task": "words", **TASK, **sections, "model": TASK["model"] | model}
    return build(ClassificationRun, value, where="test").at("toy/smoke.yaml", "variant", model)


def test_a_network_is_rehearsed_and_a_prior_is_not(project, capsys):
    parameters, seconds = REPLICATION.rehearse(config({}))
    assert parameters == sum(p.numel() for p in Toy(ToyConfig(**TASK["model"]), 24, 2).parameters())
    assert seconds > 0
    pairs = CORPUS | {"texts": ["a", "b"], "evidence": None, "classes": ["x", "y", "z"], "max_tokens": 9}
    assert REPLICATION.rehearse(config({}, corpus=pairs))[0] == parameters + TASK["model"]["size"] + 1
    stages.rehearse_stage("toy.attends", "smoke")
    assert f"toy.attends: {parameters:,} parameters" in capsys.readouterr().out
    with pytest.raises(ReplicationError, match="nothing to rehearse"):
        REPLICATION.rehearse(config({"prior": "set"}))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"sise": 3}, r"unknown key 'sise' \(did you mean 'size'\?\)"),
        ({"rows": 0}, "'rows': input should be greater than or equal to 1, got 0"),
        ({"prior": "sets"}, "'prior': input should be 'overall' or 'set', got 'sets'"),
        ({"prior": "set", "seed": 1}, "unknown key 'seed'"),
    ],
)
def test_a_wrong_model_section_is_refused_before_anything_is_done(model, message, project):
    with pytest.raises(ReplicationError, match=message) as error:
        REPLICATION.check(config(model))
    assert str(error.value).startswith("toy/smoke.yaml: variants.variant.model: ")
    home = Path("replications") / "toy" / "smoke.yaml"
    content = json.loads(home.read_text())
    content["variants"]["attends"]["model"] = model
    home.write_text(json.dumps(content))
    for stage in (stages.train_stage, stages.rehearse_stage):
        with pytest.raises(ReplicationError, match=message):
            stage("toy.attends", "smoke")
    assert not (project / "attends").exists()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"evaluation": {"heatmap": 3}}, r"did you mean 'heatmaps'\?"),
        ({"evaluation": {"deletion": 0}}, "'evaluation.deletion': input should be greater than 0"),
        ({"evaluation": {"beam": 3}}, "unknown key 'evaluation.beam'"),
        ({"evaluation": {"checkpoint": "average"}}, "needs training.average"),
        ({"decoding": {"beam": 3}}, "unknown key 'decoding'"),
        ({"training": TASK["training"] | {"max_words": 9}}, r"unknown key 'training\.max_words'"),
    ],
)
def test_settings_of_another_kind_are_refused(sections, message):
    with pytest.raises(ReplicationError, match=message):
        config({}, **sections)


def test_a_scale_file_knows_the_kind_of_every_task(project):
    settings = ScaleFile("toy", "smoke")
    assert isinstance(settings.corpus("words"), ClassifiedCorpusConfig)
    assert isinstance(settings.run("attends"), ClassificationRun)
    assert settings.run("attends").has_ensemble is False
    assert isinstance(REPLICATION._runner(settings.run("by-set"))[0], Prior)
    with pytest.raises(ReplicationError, match=r"variants\.other: 'kind': input should be 'classification'"):
        settings.run("other")
    settings.tasks["words"]["kind"] = "clasification"
    message = r"smoke\.yaml: tasks\.words: there is no kind 'clasification' \(did you mean 'classification'\?\)\."
    for unknown in (settings.run, lambda _: settings.corpus("words")):
        with pytest.raises(ReplicationError, match=message):
            unknown("attends")


def test_a_task_of_another_kind_than_the_papers_models_is_refused(project, monkeypatch):
    monkeypatch.setattr(stages, "load_replication", lambda paper: Translation(ToyConfig, Toy))
    for stage, name in ((stages.prepare_stage, "words"), (stages.train_stage, "attends"),
                        (stages.evaluate_stage, "attends")):  # fmt: skip
        with pytest.raises(ReplicationError, match=r"is of kind 'classification', .* are for 'translation'"):
            stage(f"toy.{name}", "smoke")
    assert not (project / "attends" / "train").exists()
