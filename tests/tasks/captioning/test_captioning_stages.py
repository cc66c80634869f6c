"""Tasks of kind "captioning" through the stages: images encoded once, captions prepared, a model trained and judged."""

import csv
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from shared.config import build
from shared.data import fetch as fetching
from shared.data.tokenizers import EOS
from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.tasks.captioning import preparation as caption_preparation
from shared.tasks.captioning import task as captioning
from shared.tasks.captioning.corpus import CaptionBatch, ImageBatch, PreparedCaptions
from shared.tasks.captioning.settings import CaptionCorpusConfig, CaptioningRun
from shared.tasks.captioning.task import Captioning
from shared.vision.features import Grid
from tests.pipeline.scratch import toy_project
from tests.tasks.captioning.squares import CAPTIONS, SPLITS, Colours, Toy, ToyConfig, write_dataset

CORPUS = {
    "dataset": "toy", "encoder": {"name": "efficientnet-lite0", "layer": "block15"},
    "tokenizer": {"kind": "words", "size": 40}, "test": ["test", "pairs"], "images": {"train": 24},
}  # fmt: skip
TASK = {
    "kind": "captioning",
    "corpus": CORPUS,
    "model": {"size": 16},
    "training": {"updates": 40, "batch": {"sentences": 12}, "optimizer": {"name": "adam", "learning_rate": 0.03},
                 "validate_every": 20},
    "evaluation": {"heatmaps": 2, "metrics": ["bleu"]},
    "seeds": [3, 4],
}  # fmt: skip
VARIANTS = {
    "attends": {"task": "shapes"},
    "short": {"task": "shapes", "training": {"updates": 2, "validate_every": 1}, "seeds": [3]},
    "searched": {"task": "shapes", "training": {"updates": 2, "validate_every": 1}, "evaluation": {"beam": 3}},
    "nowhere": {"task": "bought"},
}
REPLICATION = Captioning(ToyConfig, Toy)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data set that counts as fetched, and an encoder without weights; gives the list of what was verified."""
    write_dataset(tmp_path / "data" / "toy")
    verified = []
    for place in (fetching, captioning, caption_preparation):
        monkeypatch.setattr(place, "fetch", lambda dataset, **_: None)
    monkeypatch.setattr(fetching, "verify", verified.append)
    monkeypatch.setattr(caption_preparation, "build_encoder", lambda config, **_: Colours())
    return verified


@pytest.fixture
def project(data, tmp_path, monkeypatch):
    """A project with one paper, one task with images and one that is left out; returns the folder of its runs."""
    runs = toy_project(tmp_path, REPLICATION, monkeypatch, "shapes", TASK, VARIANTS, tmp_path)
    (runs / "tasks" / "shapes").unlink()
    change(lambda content: content["tasks"].update(bought={**TASK, "corpus": {"left_out": "it has to be bought"}}))
    return runs


def change(how):
    home = Path("replications") / "toy" / "smoke.yaml"
    content = json.loads(home.read_text())
    how(content)
    home.write_text(json.dumps(content))


def encode_and_prepare():
    for stage in (stages.features_stage, stages.prepare_stage):
        stage("toy.shapes", "smoke")


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
    return build(CaptioningRun, {"task": "shapes", **TASK, **sections}, where="test")


def test_images_are_encoded_once_for_all_variants(project, data, capsys):
    stages.features_stage("toy.shapes", "smoke")
    assert data == ["toy"]
    assert "toy.shapes: 4 x 4 places of 3 features" in capsys.readouterr().out
    folder = project / "features"
    assert {path.name for path in folder.iterdir()} == {"shapes", "shapes.json"}
    record = json.loads((folder / "shapes.json").read_text())
    found = {split: np.load(folder / "shapes" / f"{split}.npy") for split in record["splits"]}
    assert {split: len(rows) for split, rows in found.items()} == SPLITS | CORPUS["images"]
    assert all(rows.shape[1:] == (16, 3) and rows.dtype == np.float16 for rows in found.values())
    assert all(rows.std() > 0.1 for rows in found.values())
    stages.prepare_stage("toy.shapes", "smoke")
    kept = json.loads((project / "tasks" / "shapes" / "features.json").read_text())
    assert kept == {key: value for key, value in record.items() if key not in ("seconds", "images_per_second")}


def test_it_goes_through_the_stages_and_learns(project, capsys):
    encode_and_prepare()
    folder = project / "attends"
    run("attends")
    stages.train_stage("toy.attends", "smoke")
    assert "toy.attends seed 3: finished before, kept." in capsys.readouterr().out
    metrics = metrics_of(folder)
    assert metrics["seeds"].keys() == {"3", "4"}
    assert "ensemble" not in metrics
    assert metrics["token"] == "word"
    assert "words as they are" in metrics["signatures"]["bleu"]
    assert metrics["mean"].keys() >= {"bleu4", "pairs.bleu4", "attention_correctness"}
    record = json.loads((folder / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == 40
    assert record["parameters"]["kind"] == "captioning"
    assert record["parameter_count"] == sum(value.numel() for value in weights_of(folder, 3).values())
    assert (folder / "evaluation" / "seed3" / "attention.npz").exists()
    with (folder / "curve.csv").open() as file:
        losses = {int(row["update"]): float(row["valid_loss"]) for row in csv.DictReader(file)}
    assert losses.keys() == {20, 40}
    assert losses[40] < losses[20]
    with (folder / "train" / "seed3" / "curve.csv").open() as file:
        assert "bleu" in {row["metric"] for row in csv.DictReader(file) if row["split"] == "valid"}


def test_a_seed_decides_everything(project):
    encode_and_prepare()
    for attempt in range(2):
        stages.train_stage("toy.attends", "smoke")
        (project / "attends").rename(project / f"attempt-{attempt}")
    first, again, other = (
        weights_of(project / f"attempt-{attempt}", seed) for attempt, seed in ((0, 3), (1, 3), (0, 4))
    )
    assert all(torch.equal(again[name], value) for name, value in first.items())
    assert not any(torch.equal(other[name], value) for name, value in first.items())


def test_a_change_of_the_search_changes_no_training_and_no_example(project):
    encode_and_prepare()
    for variant in ("short", "searched"):
        run(variant)
    greedy, searched = examples_of(project / "short", 3), examples_of(project / "searched", 3)
    for key in ("id", "split", "references"):
        assert [example[key] for example in greedy] == [example[key] for example in searched]
    assert [example["split"] for example in greedy] == ["test"] * 8 + ["pairs"] * 5
    first, second = weights_of(project / "short", 3), weights_of(project / "searched", 3)
    assert all(torch.equal(second[name], value) for name, value in first.items())


def test_other_features_are_trained_on_anew(project, monkeypatch, capsys):
    encode_and_prepare()
    stages.train_stage("toy.short", "smoke")
    monkeypatch.setattr(Colours, "forward", lambda self, images, old=Colours.forward: 1 - old(self, images))
    encode_and_prepare()
    stages.train_stage("toy.short", "smoke")
    assert "seed 3: parameters, data or code have changed" in capsys.readouterr().out


def test_validation_has_every_caption_once_and_every_image_in_order(project):
    encode_and_prepare()
    text = PreparedCaptions.load(project / "tasks" / "shapes")
    batches = list(REPLICATION._validation(config(), text))
    of_captions = [batch for batch in batches if isinstance(batch, CaptionBatch)]
    of_images = [batch for batch in batches if isinstance(batch, ImageBatch)]
    assert batches == [*of_captions, *of_images]
    assert len(batches) == len(REPLICATION._validation(config(), text))
    assert sum(len(batch.captions) for batch in of_captions) == CAPTIONS * SPLITS["valid"]
    assert sum(batch.tokens for batch in of_captions) == text.split("valid").lengths[0].sum()
    references = [captions for batch in of_images for captions in batch.references]
    assert references == [tuple(own) for own in text.references("valid")]


def test_a_stage_whose_input_is_not_there_says_which_comes_first(project, capsys):
    for stage, message in (("prepare", "run the features"), ("features", None), ("prepare", None)):
        status = main([stage, "toy.shapes", "--scale", "smoke"])
        error = capsys.readouterr().err
        assert (status, error) == (0, "") if message is None else (status == 2 and message in error)
    shutil.rmtree(project / "features")
    with pytest.raises(ReplicationError, match="features"):
        stages.train_stage("toy.short", "smoke")


def test_a_task_left_out_has_a_record_that_says_so(project, capsys):
    stages.features_stage("toy.bought", "smoke")
    assert capsys.readouterr().out == "toy.bought: left out, it has to be bought\n"
    for path in ("bought.json", "bought/left_out.json"):
        assert json.loads((project / "features" / path).read_text()) == {"left_out": "it has to be bought"}
    stages.prepare_stage("toy.bought", "smoke")
    run("nowhere")
    assert metrics_of(project / "nowhere")["not_run"] == "it has to be bought"


def test_a_task_without_images_has_no_features(project):
    change(lambda content: content["tasks"]["shapes"].update(kind="translation"))
    with pytest.raises(ReplicationError, match=r"toy\.shapes has no images; run .* prepare toy\.shapes"):
        stages.features_stage("toy.shapes", "smoke")
    assert not (project / "features").exists()


def test_a_model_is_rehearsed_without_data(project, capsys):
    parameters, seconds = REPLICATION.rehearse(config())
    assert parameters == sum(p.numel() for p in Toy(ToyConfig(size=16), 40, Grid(7, 7, 320)).parameters())
    assert seconds > 0
    stages.rehearse_stage("toy.attends", "smoke")
    assert f"toy.attends: {parameters:,} parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("encoder", "grid"),
    [
        ({"name": "efficientnet-lite0", "layer": "block10"}, (14, 14, 112)),
        ({"name": "efficientnet-lite0", "layer": "block10", "pool": 2}, (7, 7, 112)),
        ({"name": "resnet101", "layer": "layer4", "side": 448, "pool": 2}, (7, 7, 2048)),
        ({"name": "vgg19", "layer": "conv5_4", "side": 128}, (8, 8, 512)),
    ],
)
def test_a_full_batch_is_like_one_of_the_data(encoder, grid):
    batch, sizes = REPLICATION._full_batch(config(corpus=CORPUS | {"max_words": 9, "encoder": encoder}))
    assert sizes == (40, Grid(*grid))
    assert batch.features.shape == (12, grid[0] * grid[1], grid[2])
    assert batch.captions.shape == (12, 10)
    assert (batch.captions[:, -1] == EOS).all()
    assert (batch.captions[:, :-1] > EOS).all()
    torch.testing.assert_close(batch.regions.sum(-1), torch.ones(12, 10))


def test_what_the_metrics_need_is_looked_for_before_training(project, monkeypatch):
    encode_and_prepare()
    monkeypatch.setenv("PATH", "/nowhere")
    change(lambda content: content["tasks"]["shapes"]["evaluation"].update(metrics=["bleu", "meteor"]))
    with pytest.raises(ReplicationError, match="Java"):
        stages.train_stage("toy.short", "smoke")
    assert not (project / "short" / "train").exists()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"model": {"sise": 3}}, r"unknown key 'sise' \(did you mean 'size'\?\)"),
        ({"evaluation": {"beem": 3}}, r"did you mean 'evaluation\.beam'|did you mean 'beam'"),
        ({"evaluation": {"beam": 0}}, "greater than or equal to 1"),
        ({"evaluation": {"normalisation": "gnmt"}}, "'none' or 'mean'"),
        ({"evaluation": {"metrics": []}}, "at least 1 item"),
        ({"evaluation": {"metrics": ["blue"]}}, "'bleu'"),
        ({"decoding": {"beam": 3}}, "unknown key 'decoding'"),
        ({"training": TASK["training"] | {"max_words": 9}}, r"unknown key 'training\.max_words'"),
        ({"corpus": CORPUS | {"texts": ["a"]}}, r"unknown key 'corpus\.texts'"),
    ],
)
def test_wrong_settings_and_those_of_another_kind_are_refused(sections, message):
    with pytest.raises(ReplicationError, match=message):
        REPLICATION.check(config(**sections))


def test_a_scale_file_knows_the_kind(project):
    settings = ScaleFile("toy", "smoke")
    assert isinstance(settings.corpus("shapes"), CaptionCorpusConfig)
    assert isinstance(settings.run("attends"), CaptioningRun)
    assert settings.run("searched").evaluation.beam == 3
    assert settings.run("attends").has_ensemble is False
