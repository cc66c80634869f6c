"""Tasks of kind "language" through the stages: a text fetched, encoded as one stream, modelled, judged and reported."""

import csv
import gzip
import itertools
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import yaml

from shared.config import build, load_yaml
from shared.data.tokenizers import EOS
from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.config import ScaleFile
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.figures import ContextLengths, MemoryLengths, Samples
from shared.tasks.language.settings import LanguageCorpusConfig, LanguageRun, ReachConfig
from shared.tasks.language.task import LanguageModelling
from shared.tasks.translation.settings import TranslationRun
from tests.pipeline.scratch import toy_project
from tests.tasks.language.toy_language_models import CARD, Toy, ToyConfig, write_card

CORPUS = {
    "dataset": "toy", "recalls": "recall", "tokenizer": {"kind": "words", "size": 20}, "test": ["test", "test_other"],
}  # fmt: skip
TRAINING = {
    "updates": 40, "batch": {"sentences": 6, "length": 8}, "memory": 8, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.02},
}  # fmt: skip
EVALUATION = {
    "length": 10, "reach": {"memory": 10}, "columns": 3, "block": 50, "memories": [0, 20],
    "contexts": {"step": 4, "most": 12, "positions": 20}, "samples": {"prompt": 12, "length": 9},
}  # fmt: skip
TASK = {
    "kind": "language", "corpus": CORPUS, "model": {"size": 12}, "training": TRAINING, "evaluation": EVALUATION,
    "seeds": [3, 4],
}  # fmt: skip
SHORT = {"task": "recall", "training": {"updates": 2, "validate_every": 1}}
VARIANTS = {
    "remembers": {"task": "recall"},
    "short": SHORT,
    "otherwise": SHORT | {"evaluation": {"length": 7, "columns": 2, "samples": None}},
    "too-wide": {"task": "recall", "training": {"batch": {"sentences": 300}}},
    "nowhere": {"task": "bought"},
}
REPLICATION = LanguageModelling(ToyConfig, Toy)
FIGURES = [
    MemoryLengths({"Memory": ["remembers"]}), ContextLengths({"all": ["remembers", "short"]}), Samples(["remembers"])
]  # fmt: skip
TASKS = {"recall": TASK, "bought": {**TASK, "corpus": {"left_out": "it has to be bought"}}}
PAPER = "{short: Toy, title: T, authors: [A], venue: V, year: 2019, url: 'https://example.org'}"
CLAIM = {
    "id": "T-C1", "statement": "Longer training helps.", "where": "nowhere", "effect_in_paper": {"text": "none"},
    "deciding": [{"name": "long", "kind": "less", "metric": "word_perplexity", "variants": ["remembers", "short"]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A fetched data set and a prepared task, made by their stages."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        write_card(folder)
        enter(folder, patch)
        stages.fetch_stage("toy.recall", "smoke")
        stages.prepare_stage("toy.recall", "smoke")
    return folder


@pytest.fixture
def project(prepared, tmp_path, monkeypatch):
    """A project with one paper, one prepared task and one that is left out; returns the folder of its runs."""
    return enter(tmp_path, monkeypatch, prepared / "runs" / "smoke" / "toy" / "tasks" / "recall")


def enter(folder, monkeypatch, prepared=Path("nowhere")):
    runs = toy_project(folder, REPLICATION, monkeypatch, "recall", TASK, VARIANTS, prepared)
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


def examples_of(folder, seed):
    with gzip.open(folder / "evaluation" / f"seed{seed}" / "examples.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def weights_of(folder, seed):
    checkpoint = folder / "train" / f"seed{seed}" / "checkpoints" / "last.ckpt"
    return torch.load(checkpoint, weights_only=True)["state_dict"]


def config(**sections):
    return build(LanguageRun, {"task": "recall", **TASK, **sections}, where="test")


def test_a_generated_text_is_fetched_and_encoded_as_one_stream(prepared):
    def words(kind):
        texts = {split: (prepared / "data" / "toy" / f"{split}.{kind}").read_text() for split in CARD["splits"]}
        return {split: (len(text.split()), text.count("\n")) for split, text in texts.items()}

    runs = prepared / "runs" / "smoke" / "toy"
    fetched = json.loads((runs / "fetched" / "recall.json").read_text())
    assert {f"{split}.{kind}" for split in CARD["splits"] for kind in ("text", "recall")} == fetched["files"].keys()
    text = PreparedLanguage.load(runs / "tasks" / "recall")
    recalls = words("recall")
    for split, (count, lines) in words("text").items():
        stream = text.split(split)
        assert len(stream) == text.units[split] == count + lines
        assert (stream.distances > 0).sum() == recalls[split][0] > 0


def test_it_goes_through_the_stages_and_learns(project, prepared, capsys):
    folder = project / "remembers"
    run("remembers")
    stages.train_stage("toy.remembers", "smoke")
    assert "toy.remembers seed 3: finished before, kept." in capsys.readouterr().out
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["seeds"].keys() == {"3", "4"}
    assert "ensemble" not in metrics
    assert metrics["token"] == "word"
    assert metrics["mean"].keys() >= {"word_perplexity", "test_other.word_perplexity", "recalled@16"}
    record = json.loads((folder / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == 40
    assert record["parameters"]["kind"] == "language"
    assert record["parameter_count"] == sum(value.numel() for value in weights_of(folder, 3).values())
    examples = examples_of(folder, 3)
    text = PreparedLanguage.load(prepared / "runs" / "smoke" / "toy" / "tasks" / "recall")
    for split in ("test", "test_other"):
        assert sum(e["tokens"] for e in examples if e["split"] == split) == len(text.split(split))
    with (folder / "curve.csv").open() as file:
        losses = {int(row["update"]): float(row["valid_loss"]) for row in csv.DictReader(file)}
    assert losses.keys() == {20, 40}
    assert losses[40] < losses[20]


def test_a_report_is_made_of_it(project, monkeypatch):
    report = ModuleType("replications.toy.report")
    report.FIGURES = FIGURES
    monkeypatch.setitem(sys.modules, report.__name__, report)
    home = Path("replications") / "toy"
    (home / "paper.yaml").write_text(PAPER)
    (home / "claims.yaml").write_text(yaml.safe_dump({"claims": [CLAIM]}))
    change(lambda content: content["variants"].pop("too-wide"))
    for variant in ("remembers", "short", "nowhere"):
        run(variant)
    stages.report_stage("toy", "smoke")
    out = Path("reports") / "smoke" / "toy"
    (claim,) = json.loads((out / "claims.json").read_text())
    assert claim["verdict"] == "reproduced"
    page = (out / "README.md").read_text()
    assert "it has to be bought" in page
    written = json.loads((project / "remembers" / "evaluation" / "seed3" / "samples.json").read_text())
    assert written[0]["text"].split()[0] in page
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
    for key in ("id", "split", "tokens"):
        assert [example[key] for example in one] == [example[key] for example in other]
    first, second = weights_of(project / "short", 3), weights_of(project / "otherwise", 3)
    assert all(torch.equal(second[name], value) for name, value in first.items())
    assert not (project / "otherwise" / "evaluation" / "seed3" / "samples.json").exists()


def test_training_can_begin_at_any_batch(prepared):
    text = PreparedLanguage.load(prepared / "runs" / "smoke" / "toy" / "tasks" / "recall")
    run = config()
    count = text.split("train").epoch_batches(columns=6, length=8)
    batches = REPLICATION._batches(run, text, 3)
    from_first = list(itertools.islice(batches(0), count + 3))
    assert [batch.reset for batch in from_first] == [i in (0, count) for i in range(count + 3)]
    for start in (1, count - 1, count, count + 1):
        later = next(batches(start))
        assert torch.equal(later.places, from_first[start].places)
        assert later.reset == from_first[start].reset
    assert not torch.equal(next(REPLICATION._batches(run, text, 4)(0)).places, from_first[0].places)


def test_validation_has_every_symbol_once_and_depends_on_training_alone(prepared):
    text = PreparedLanguage.load(prepared / "runs" / "smoke" / "toy" / "tasks" / "recall")
    batches = REPLICATION._validation(config(), text)
    places = torch.cat([batch.places[batch.mask] for batch in batches])
    assert sorted(places.tolist()) == list(range(len(text.split("valid"))))
    assert [batch.reset for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert batches[0].inputs.shape == (6, 8)
    other = REPLICATION._validation(config(evaluation=EVALUATION | {"columns": 1, "length": 3}), text)
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(batches, other, strict=True))


def test_a_text_too_short_for_one_batch_is_refused_before_training(project):
    with pytest.raises(ReplicationError, match=r"300 columns of segments of 8 symbols need 2,400 symbols, but the"):
        stages.train_stage("toy.too-wide", "smoke")
    assert not list((project / "too-wide").rglob("*.*"))


def test_a_task_left_out_is_neither_fetched_nor_run(project):
    for stage in (stages.fetch_stage, stages.prepare_stage):
        stage("toy.bought", "smoke")
    run("nowhere")
    assert json.loads((project / "nowhere" / "metrics.json").read_text())["not_run"] == "it has to be bought"


def test_a_model_is_rehearsed_without_data(project, capsys):
    parameters, seconds = REPLICATION.rehearse(config())
    assert parameters == sum(p.numel() for p in Toy(ToyConfig(size=12), 20).parameters())
    assert seconds > 0
    stages.rehearse_stage("toy.remembers", "smoke")
    assert f"toy.remembers: {parameters:,} parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("corpus", "symbols"), [({}, 20), ({"tokenizer": {"kind": "bytes"}, "unit": "byte", "recalls": None}, EOS + 257)]
)
def test_a_full_batch_is_like_one_of_the_data(corpus, symbols):
    batch, sizes = REPLICATION._full_batch(config(corpus=CORPUS | corpus))
    assert sizes == (symbols, None)
    assert batch.inputs.shape == batch.targets.shape == (6, 8)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert EOS < batch.inputs.min() <= batch.inputs.max() < symbols
    assert batch.tokens == 48
    assert not batch.reset


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("model", {"sise": 3}, r"unknown key 'sise' \(did you mean 'size'\?\)"),
        ("training", {"batch": {"sentences": 6}, "memory": 0}, r"'training\.batch\.length': field required"),
        ("training", {"batch": {"tokens": 60}, "memory": 0}, r"unknown key 'training\.batch\.tokens'"),
        ("training", {"batch": {"sentences": 6, "length": 8, "pool": 3}}, "unknown key 'training.batch.pool'"),
        ("training", {"label_smoothing": 0.1}, "unknown key 'training.label_smoothing'"),
        ("training", {"loss_per": "sentence"}, r"unknown key 'training\.loss_per' \(did you mean 'loss_on'\?\)"),
        ("training", {"max_words": 9}, "unknown key 'training.max_words'"),
        ("training", {"monitor": "loss"}, "unknown key 'training.monitor'"),
        ("training", {"memory": -1}, r"'training\.memory': input should be greater than or equal to 0"),
        ("evaluation", {"beam": 3}, "unknown key 'evaluation.beam'"),
        ("evaluation", {"heatmaps": 3}, "unknown key 'evaluation.heatmaps'"),
        ("evaluation", {"reach": {"memory": 0, "same_length": True}}, "same_length needs a memory greater than 0"),
        ("evaluation", {"reach": {"memory": 9, "same_length": True}}, "same_length needs memories greater than 0"),
        ("evaluation", {"reach": {"memory": 9, "clamp": 0}}, "'evaluation.reach.clamp'.*greater than 0"),
        ("evaluation", {"sliding": {"context": 9}}, r"set reach\.memory to 0, got"),
        ("evaluation", {"sliding": {"context": 9, "stride": 10}}, r"stride \(10\) must not exceed context \(9\)"),
        ("evaluation", {"contexts": {"step": 4, "most": 9, "positions": 9}}, r"most \(9\) must be a multiple of step"),
        ("evaluation", {"samples": {"top_p": 1.5}}, "'evaluation.samples.top_p'.*less than or equal to 1"),
        ("corpus", {"texts": ["a"]}, "unknown key 'corpus.texts'"),
    ],
)
def test_wrong_settings_and_those_of_another_kind_are_refused(section, changes, message):
    with pytest.raises(ReplicationError, match=message):
        REPLICATION.check(config(**{section: TASK[section] | changes}))


def test_segments_are_refused_where_there_is_no_running_text():
    task = load_yaml(Path("replications/bahdanau/smoke.yaml"))["tasks"]["table1"]
    task["training"]["batch"] = {"sentences": 6, "length": 8}
    with pytest.raises(ReplicationError, match=r"unknown key 'training\.batch\.length'"):
        build(TranslationRun, {"task": "table1", **task}, where="test")


def test_a_scale_file_knows_the_kind(project):
    settings = ScaleFile("toy", "smoke")
    assert isinstance(settings.corpus("recall"), LanguageCorpusConfig)
    assert isinstance(settings.run("remembers"), LanguageRun)
    assert settings.run("remembers").has_ensemble is False
    assert settings.run("otherwise").evaluation.reach.reach == (10, False, None)
    assert ReachConfig(memory=4, same_length=True, clamp=3).reach == (4, True, 3)
