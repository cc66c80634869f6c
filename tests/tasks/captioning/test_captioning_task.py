"""Captioning beyond what all kinds have in common: images that are encoded once, and what judges captions."""

import json

import pytest
import torch

from shared.config import build
from shared.data.tokenizers import EOS
from shared.errors import ReplicationError
from shared.tasks.captioning import preparation as caption_preparation
from shared.tasks.captioning import task as captioning
from shared.tasks.captioning.corpus import CaptionBatch, ImageBatch, PreparedCaptions
from shared.tasks.captioning.settings import CaptioningRun
from shared.vision.features import Grid
from tests.tasks.captioning.squares import CAPTIONS, SPLITS, Colours, Toy, ToyConfig, write_dataset
from tests.tasks.in_process import paper, train

CORPUS = {
    "dataset": "toy", "encoder": {"name": "efficientnet-lite0", "layer": "block15"},
    "tokenizer": {"kind": "words", "size": 40}, "test": ["test", "pairs"], "images": {"train": 24},
}  # fmt: skip
TASK = {
    "corpus": CORPUS,
    "model": {"size": 16},
    "training": {"updates": 40, "batch": {"sentences": 12}, "optimizer": {"name": "adam", "learning_rate": 0.03},
                 "validate_every": 20},
    "evaluation": {"heatmaps": 2, "metrics": ["bleu"]},
    "seeds": [3, 4],
}  # fmt: skip
REPLICATION = paper("captioning", ToyConfig, Toy)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with data that count as fetched, and an encoder without weights."""
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path / "data" / "toy")
    monkeypatch.setattr(caption_preparation, "fetch", lambda dataset, **_: None)
    monkeypatch.setattr(caption_preparation, "build_encoder", lambda config, **_: Colours())
    return tmp_path


def encode(root):
    """What the features stage makes: its record, with the features in ``features/shapes``."""
    out = root / "features" / "shapes"
    out.mkdir(parents=True, exist_ok=True)
    record = REPLICATION.task.features(config().corpus, root / "data" / "toy", out)
    out.with_name("shapes.json").write_text(json.dumps(record))
    return record


def prepare(root):
    out = root / "tasks" / "shapes"
    out.mkdir(parents=True, exist_ok=True)
    REPLICATION.task.prepare(config().corpus, root / "data" / "toy", out)
    return out


@pytest.fixture
def prepared(root):
    encode(root)
    return prepare(root)


def config(**sections):
    return build(CaptioningRun, {"task": "shapes", **TASK, **sections}, where="test")


def test_validation_has_every_caption_once_and_every_image_in_order(prepared):
    text = PreparedCaptions.load(prepared)
    validation = text.valid(config().training)
    batches = list(validation)
    of_captions = [batch for batch in batches if isinstance(batch, CaptionBatch)]
    of_images = [batch for batch in batches if isinstance(batch, ImageBatch)]
    assert batches == [*of_captions, *of_images]
    assert len(list(validation)) == len(batches)  # at every validation anew
    assert sum(len(batch.captions) for batch in of_captions) == CAPTIONS * SPLITS["valid"]
    assert sum(batch.tokens for batch in of_captions) == text.split("valid").lengths[0].sum()
    references = [captions for batch in of_images for captions in batch.references]
    assert references == [tuple(own) for own in text.references("valid")]


@pytest.mark.parametrize(
    ("encoder", "grid"),
    [
        ({"name": "efficientnet-lite0", "layer": "block10"}, (14, 14, 112)),
        ({"name": "efficientnet-lite0", "layer": "block10", "pool": 2}, (7, 7, 112)),
        ({"name": "vgg19", "layer": "conv5_4", "side": 128}, (8, 8, 512)),
    ],
)
def test_a_full_batch_is_like_one_of_the_data(encoder, grid):
    batch, sizes = captioning.random_batch(config(corpus=CORPUS | {"max_words": 9, "encoder": encoder}))
    assert sizes == (40, Grid(*grid))
    assert batch.features.shape == (12, grid[0] * grid[1], grid[2])
    assert batch.captions.shape == (12, 10)
    assert (batch.captions[:, -1] == EOS).all()
    assert (batch.captions[:, :-1] > EOS).all()
    torch.testing.assert_close(batch.regions.sum(-1), torch.ones(12, 10))


def test_what_the_metrics_need_is_looked_for_before_training(prepared, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    run = config(evaluation=TASK["evaluation"] | {"metrics": ["bleu", "meteor"]})
    with pytest.raises(ReplicationError, match="Java"):
        train(REPLICATION, run, prepared, tmp_path)
    assert not (tmp_path / "seed3").exists()
