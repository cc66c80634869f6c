"""Tasks of kind "sequences" through the stages: fetched, encoded, modelled, judged and reported."""

import csv
import gzip
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from shared.config import build
from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.config import ScaleFile
from shared.tasks.sequences.alphabet import VOCABULARY
from shared.tasks.sequences.corpus import load_prepared
from shared.tasks.sequences.module import CountingSequenceModule
from shared.tasks.sequences.settings import CopyCorpusConfig, SequenceRun
from shared.tasks.sequences.task import Sequences
from tests.pipeline.scratch import toy_project
from tests.tasks.sequences.toy_sequence_models import Toy, ToyConfig, write_card, write_pictures, write_proteins

COPIES = {
    "of": "copies", "dataset": "toy", "shortest": 2, "longest": 4, "test": ["test", "test_other"],
    "sequences": {"train": 90, "valid": 20, "test": 15, "test_other": 10},
}  # fmt: skip
PROTEINS = {"of": "proteins", "dataset": "toy", "length": 20}
PIXELS = {"of": "pixels", "dataset": "toy", "levels": 8, "pool": 2}
COUNTS = {"train": 40, "valid": 12, "test": 9}
TRAINING = {
    "updates": 40, "batch": {"sentences": 10}, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.03},
}  # fmt: skip
TASK = {
    "kind": "sequences", "corpus": COPIES, "model": {"size": 12}, "training": TRAINING,
    "evaluation": {"tokens": 60}, "seeds": [3, 4],
}  # fmt: skip
SHORT = {"task": "copy", "training": {"updates": 2, "validate_every": 1}}
VARIANTS = {
    "remembers": {"task": "copy", "evaluation": {"swapped": {"same": {}, "noisy": {"noise": 2.0}}}},
    "short": SHORT,
    "otherwise": SHORT | {"evaluation": {"tokens": 11}},
    "wider": SHORT | {"evaluation": {"swapped": {"wide": {"size": 13}}}},
    "explodes": {"task": "copy", "training": {"may_diverge": True}},
    "nowhere": {"task": "bought"},
}
REPLICATION = Sequences(ToyConfig, Toy)
TASKS = {"copy": TASK, "bought": {"kind": "sequences", "corpus": {"left_out": "it has to be bought"}}}
PAPER = "{short: Toy, title: T, authors: [A], venue: V, year: 2020, url: 'https://example.org'}"
CLAIM = {
    "id": "T-C1", "statement": "Longer training helps.", "where": "nowhere", "effect_in_paper": {"text": "none"},
    "deciding": [{"name": "long", "kind": "less", "metric": "perplexity", "variants": ["remembers", "short"]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A fetched data set and a prepared task, made by their stages."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        write_card(folder)
        enter(folder, patch)
        stages.fetch_stage("toy.copy", "smoke")
        stages.prepare_stage("toy.copy", "smoke")
    return folder


@pytest.fixture
def project(prepared, tmp_path, monkeypatch):
    """A project with one paper, one prepared task and one that is left out; returns the folder of its runs."""
    return enter(tmp_path, monkeypatch, prepared / "runs" / "smoke" / "toy" / "tasks" / "copy")


@pytest.fixture(scope="module")
def text(prepared, tmp_path_factory):
    """From a corpus to its prepared task."""
    folder = tmp_path_factory.mktemp("texts")
    for name in ("proteins", "pixels", "prepared"):
        (folder / name).mkdir()
    write_proteins(folder / "proteins", COUNTS)
    write_pictures(folder / "pixels", COUNTS)

    def opened(corpus):
        checked = config(corpus=corpus).corpus
        if corpus["of"] == "copies":
            return load_prepared(checked, prepared / "runs" / "smoke" / "toy" / "tasks" / "copy")
        REPLICATION.prepare(checked, folder / corpus["of"], folder / "prepared" / corpus["of"])
        return load_prepared(checked, folder / "prepared" / corpus["of"])

    return opened


def enter(folder, monkeypatch, prepared=Path("nowhere")):
    runs = toy_project(folder, REPLICATION, monkeypatch, "copy", TASK, VARIANTS, prepared)
    if not prepared.exists():
        shutil.rmtree(runs)
    change(lambda content: content.update(tasks=TASKS))
    return runs


def change(how):
    home = Path("replications") / "toy" / "smoke.yaml"
    content = json.loads(home.read_text())
    how(content)
    home.write_text(json.dumps(content))


def run(variant):
    for stage in (stages.train_stage, stages.evaluate_stage):
        stage(f"toy.{variant}", "smoke")


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text())


def examples_of(folder, seed):
    with gzip.open(folder / "evaluation" / f"seed{seed}" / "examples.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def weights_of(folder, seed):
    checkpoint = folder / "train" / f"seed{seed}" / "checkpoints" / "last.ckpt"
    return torch.load(checkpoint, weights_only=True)["state_dict"]


def config(**sections):
    return build(SequenceRun, {"task": "copy", **TASK, **sections}, where="test")


def first_batches(text, corpus, seed=3, start=0, count=4):
    batches = REPLICATION._batches(config(corpus=corpus), text(corpus), seed)(start)
    return list(itertools.islice(batches, count))


def test_it_goes_through_the_stages_and_learns(project, capsys):
    folder = project / "remembers"
    run("remembers")
    stages.train_stage("toy.remembers", "smoke")
    assert "toy.remembers seed 3: finished before, kept." in capsys.readouterr().out
    metrics = metrics_of(folder)
    assert metrics["seeds"].keys() == {"3", "4"}
    assert "ensemble" not in metrics
    assert metrics["token"] == "symbol"
    assert metrics["mean"].keys() >= {"token_accuracy", "perplexity", "test_other.token_accuracy"}
    record = json.loads((folder / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == 40
    assert record["parameters"]["corpus"]["of"] == "copies"
    buffers = ("model.origin", "model.drawn")
    assert record["parameter_count"] == sum(
        value.numel() for name, value in weights_of(folder, 3).items() if name not in buffers
    )
    assert [e["id"] for e in examples_of(folder, 3)] == [
        f"{split}-{i}" for split in ("test", "test_other") for i in range(COPIES["sequences"][split])
    ]
    with (folder / "curve.csv").open() as file:
        losses = {int(row["update"]): float(row["valid_loss"]) for row in csv.DictReader(file)}
    assert losses.keys() == {20, 40}
    assert losses[40] < losses[20]


def test_the_weights_are_judged_in_other_models_too(project):
    """What these draw for themselves is the same every time, and another for another seed."""
    run("remembers")
    first = metrics_of(project / "remembers")
    for scores in first["seeds"].values():
        assert scores["perplexity@same"] == scores["perplexity"]
        assert scores["perplexity@noisy"] > scores["perplexity"]
    assert len({scores["perplexity@noisy"] for scores in first["seeds"].values()}) == 2
    stages.evaluate_stage("toy.remembers", "smoke")
    assert metrics_of(project / "remembers") == first


def test_a_model_with_other_weights_cannot_take_the_place(project):
    stages.train_stage("toy.wider", "smoke")
    with pytest.raises(ReplicationError, match=r"swapped\.wide makes a model whose weights are others"):
        stages.evaluate_stage("toy.wider", "smoke")


def test_a_report_is_made_of_it(project):
    home = Path("replications") / "toy"
    (home / "paper.yaml").write_text(PAPER)
    (home / "claims.yaml").write_text(yaml.safe_dump({"claims": [CLAIM]}))
    kept = ("remembers", "short", "nowhere")
    change(lambda content: content.update(variants={name: VARIANTS[name] for name in kept}))
    for variant in kept:
        run(variant)
    stages.report_stage("toy", "smoke")
    out = Path("reports") / "smoke" / "toy"
    (claim,) = json.loads((out / "claims.json").read_text())
    assert claim["effect"] < -1  # two seeds prove nothing
    assert "it has to be bought" in (out / "README.md").read_text()
    assert list((out / "figures").glob("*.png"))


def test_a_seed_decides_everything(project):
    for attempt in range(2):
        stages.train_stage("toy.remembers", "smoke")
        (project / "remembers").rename(project / f"attempt-{attempt}")
    first, again, other = (
        weights_of(project / f"attempt-{attempt}", seed) for attempt, seed in ((0, 3), (1, 3), (0, 4))
    )
    assert all(torch.equal(again[name], value) for name, value in first.items())
    assert not any(torch.equal(other[name], value) for name, value in first.items())


def test_the_settings_of_evaluation_change_no_training_and_no_example(project):
    for variant in ("short", "otherwise"):
        run(variant)
    one, other = examples_of(project / "short", 3), examples_of(project / "otherwise", 3)
    for key in ("id", "split", "tokens", "length"):
        assert [example[key] for example in one] == [example[key] for example in other]
    first, second = weights_of(project / "short", 3), weights_of(project / "otherwise", 3)
    assert all(torch.equal(second[name], value) for name, value in first.items())


def test_a_run_that_diverges_is_judged_as_it_was_before(project, monkeypatch, capsys):
    def told(model, number):
        if number == 24:
            model.embedding.weight.register_hook(lambda gradient: gradient * float("inf"))

    monkeypatch.setattr(Toy, "at_update", told)
    run("explodes")
    stages.train_stage("toy.explodes", "smoke")
    assert "toy.explodes seed 4: finished before, kept." in capsys.readouterr().out
    record = json.loads((project / "explodes" / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == 24
    assert record["stopped_because"] == "the gradient was not finite at update 25, which was not made"
    assert metrics_of(project / "explodes")["mean"]["perplexity"] < 20


@pytest.mark.parametrize("corpus", [COPIES, PIXELS, PROTEINS, PROTEINS | {"masked": True}])
def test_training_can_begin_at_any_batch(text, corpus):
    whole = first_batches(text, corpus, count=14)  # more than an epoch has
    for start in (1, 3, 12):
        (later,) = first_batches(text, corpus, start=start, count=1)
        assert torch.equal(later.inputs, whole[start].inputs)
        assert torch.equal(later.scored, whole[start].scored)
    (other,) = first_batches(text, corpus, seed=4, count=1)
    assert not torch.equal(other.inputs, whole[0].inputs)


def test_what_is_masked_changes_from_batch_to_batch_and_with_the_seed(text):
    corpus, scored = PROTEINS | {"masked": True}, []
    for seed, number in ((3, 0), (3, 4), (4, 0)):
        train, order = REPLICATION._training_order(config(corpus=corpus), text(corpus), seed)
        (batch,) = first_batches(text, corpus, seed=seed, start=number, count=1)
        assert torch.equal(batch.scored, train.batch(next(order(start=number)), (seed, number)).scored)
        scored.append(train.batch(np.arange(10), (seed, number)).scored)
    assert not any(torch.equal(*pair) for pair in itertools.combinations(scored, 2))


def test_validation_has_every_sequence_once_and_always_masks_the_same(text):
    corpus = PROTEINS | {"masked": True}
    batches = REPLICATION._validation(config(corpus=corpus), text(corpus))
    assert sum(len(batch.inputs) for batch in batches) == COUNTS["valid"]
    again = REPLICATION._validation(config(corpus=corpus, evaluation={"tokens": 7}), text(corpus))
    for one, other in zip(batches, again, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.scored, other.scored)


@pytest.mark.parametrize(
    ("corpus", "sizes"), [(COPIES, (7, True)), (PIXELS, (9, True)), (PROTEINS | {"masked": True}, (VOCABULARY, False))]
)
def test_a_model_is_built_for_what_the_corpus_asks(text, corpus, sizes):
    run = config(corpus=corpus)
    assert REPLICATION._sizes(run, text(corpus)) == sizes
    model = REPLICATION.model(run, text(corpus))
    assert model.embedding.num_embeddings == sizes[0]
    assert model.layer.bidirectional != sizes[1]
    assert isinstance(REPLICATION._module(model, run, None), CountingSequenceModule) == (corpus["of"] != "pixels")


def test_a_task_left_out_is_neither_fetched_nor_run(project):
    for stage in (stages.fetch_stage, stages.prepare_stage):
        stage("toy.bought", "smoke")
    run("nowhere")
    assert metrics_of(project / "nowhere")["not_run"] == "it has to be bought"


@pytest.mark.parametrize(
    ("corpus", "symbols", "length"),
    [
        (COPIES, 11, 9), (PIXELS | {"dataset": "mnist"}, 9, 196), (PIXELS | {"dataset": "cifar10"}, 9, 768),
        (PROTEINS, VOCABULARY, 20), (PROTEINS | {"masked": True}, VOCABULARY, 20),
    ],
)  # fmt: skip
def test_a_full_batch_is_like_one_of_the_data(corpus, symbols, length):
    run = config(corpus=corpus)
    batch, sizes = REPLICATION._full_batch(run)
    assert sizes == (symbols, run.corpus.causal)
    assert batch.inputs.shape == batch.targets.shape == batch.scored.shape == (10, length)
    assert 0 <= batch.targets.min() <= batch.targets.max() < symbols - 1
    assert batch.tokens == (10 * length if run.corpus.causal else 10 * -(-length // 7))
    parameters, seconds = REPLICATION.rehearse(run)
    assert parameters == sum(p.numel() for p in Toy(ToyConfig(size=12), *sizes).parameters())
    assert seconds > 0


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("model", {"sise": 3}, r"unknown key 'sise' \(did you mean 'size'\?\)"),
        ("training", {"batch": {"sentences": 6, "length": 8}}, "unknown key 'training.batch.length'"),
        ("training", {"label_smoothing": 0.1}, "unknown key 'training.label_smoothing'"),
        ("training", {"loss_per": "sentence"}, "unknown key 'training.loss_per'"),
        ("training", {"max_words": 9}, "unknown key 'training.max_words'"),
        ("training", {"monitor": "bleu"}, "'training.monitor': input should be 'loss' or 'error'"),
        ("evaluation", {"tokens": 0}, "'evaluation.tokens'.*greater than 0"),
        ("evaluation", {"heatmaps": 3}, "unknown key 'evaluation.heatmaps'"),
        ("evaluation", {"swapped": {"other": {"noize": 1}}}, r"unknown key 'noize' \(did you mean 'noise'\?\)"),
        ("evaluation", {"pictures": {"samples": 3}}, r"only models of pixels .* leave out evaluation\.pictures"),
        ("evaluation", {"pictures": {"given": 1.0}}, "'evaluation.pictures.given'.*less than 1"),
        ("evaluation", {"baseline": True}, r"only proteins .* leave out evaluation\.baseline"),
        ("corpus", {"of": "letters"}, "'copies', 'pixels', 'proteins'"),
        ("corpus", {"longst": 3}, r"did you mean 'longest'\?"),
    ],
)
def test_wrong_settings_and_those_of_another_kind_are_refused(section, changes, message):
    with pytest.raises(ReplicationError, match=message):
        REPLICATION.check(config(**{section: TASK[section] | changes}))


def test_a_scale_file_knows_the_kind_and_which_corpus_it_is(project):
    settings = ScaleFile("toy", "smoke")
    assert isinstance(settings.corpus("copy"), CopyCorpusConfig)
    assert isinstance(settings.run("remembers"), SequenceRun)
    assert settings.run("remembers").evaluation.swapped["noisy"] == {"noise": 2.0}
    change(lambda content: content["tasks"]["copy"].update(corpus=PIXELS | {"lewels": 3}))
    with pytest.raises(ReplicationError, match=r"unknown key 'corpus\.lewels' \(did you mean 'lev"):
        ScaleFile("toy", "smoke").corpus("copy")
    change(lambda content: content["tasks"]["copy"]["corpus"].pop("of"))
    with pytest.raises(ReplicationError, match=r"tasks\.copy: 'corpus': .*discriminator 'of'"):
        ScaleFile("toy", "smoke").corpus("copy")


def test_each_kind_of_corpus_is_prepared_and_opened(text):
    for corpus, count in ((COPIES, 15), (PIXELS, COUNTS["test"]), (PROTEINS, COUNTS["test"])):
        split = text(corpus).split("test")
        assert len(split) == count
        assert REPLICATION._lengths(split)[0].shape == (count,)
        assert split.batch(np.arange(2)).inputs.shape[0] == 2
