"""Pictures as sequences of pixels, smaller and coarser, and their batches."""

import numpy as np
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.tasks.sequences.pixels import pictures
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.sequences.toy_sequence_models import write_pictures

COUNTS = {"train": 5, "valid": 2, "test": 3}


def prepared(tmp_path, **config):
    corpus = {"of": "pixels"} | config
    summary, task = in_process.prepared("sequences", corpus, tmp_path / "toy", tmp_path / "out")
    return task, summary


def read(task, name):
    """The pixels (N, T) of a split."""
    split = task.split(name)
    return split.batch(np.arange(len(split))).targets.numpy()


@given(st.sampled_from([1, 2, 3]), st.integers(2, 256), st.sampled_from([1, 3]), st.integers(0, 99))
@example(1, 256, 3, 0)
@settings(max_examples=30)
def test_a_pixel_is_the_level_of_the_rounded_mean_of_its_square(tmp_path_factory, pool, levels, channels, seed):
    tmp_path = tmp_path_factory.mktemp("pixels")
    images = write_pictures(tmp_path / "toy", COUNTS, shape=(6, 12, channels), seed=seed)["test"]
    pixels, summary = prepared(tmp_path, pool=pool, levels=levels)
    assert (summary["shape"], summary["levels"]) == ((6 // pool, 12 // pool, channels), levels)
    found = read(pixels, "test").reshape(-1, *summary["shape"])
    if (pool, levels) == (1, 256):
        assert (pictures(read(pixels, "test"), summary["shape"], levels) == images).all()
    for image, own in zip(images, found, strict=True):
        for (row, column, channel), level in np.ndenumerate(own):
            square = image[row * pool : (row + 1) * pool, column * pool : (column + 1) * pool, channel]
            mean = int(np.floor(square.mean() + 0.5))
            assert level == int(mean / 256 * levels)


def test_the_brightest_square_of_the_largest_side_does_not_overflow(tmp_path):
    (tmp_path / "toy").mkdir()
    for name in COUNTS:
        np.save(tmp_path / f"toy/{name}.images.npy", np.full((1, 16, 16, 1), 255, np.uint8))
    for levels in (2, 16, 256):
        pixels, summary = prepared(tmp_path, pool=16, levels=levels)
        assert read(pixels, "train").tolist() == [[levels - 1]]
        assert pictures(read(pixels, "train"), (1, 1, 1), levels).tolist() == [[[[255]]]]
        assert summary["splits"]["test"] == {"images": 1, "in_train": 1}


def test_pictures_that_become_those_of_train_are_counted(tmp_path):
    splits = write_pictures(tmp_path / "toy", {"train": 60, "valid": 9, "test": 40}, (2, 2, 1))
    pixels, summary = prepared(tmp_path, levels=2)
    train = {row.tobytes() for row in read(pixels, "train")}
    for name in ("valid", "test"):
        again = sum(row.tobytes() in train for row in read(pixels, name))
        assert summary["splits"][name] == {"images": len(splits[name]), "in_train": again}
    assert summary["splits"]["test"]["in_train"] > 20


def test_the_first_pictures_of_a_split_are_taken_if_asked(tmp_path):
    splits = write_pictures(tmp_path / "toy", COUNTS)
    pixels, _ = prepared(tmp_path, images={"train": 2, "test": 99})
    assert (read(pixels, "train") == splits["train"][:2].reshape(2, -1)).all()
    assert [len(pixels.split(name)) for name in COUNTS] == [2, 2, 3]


def test_a_batch_predicts_every_pixel_but_the_first_from_those_before_it(tmp_path):
    write_pictures(tmp_path / "toy", COUNTS)
    pixels, _ = prepared(tmp_path, levels=16)
    split = pixels.split("train")
    batch = split.batch(np.array([3, 0])).to("cpu")
    assert batch.targets.tolist() == read(pixels, "train")[[3, 0]].tolist()
    assert batch.inputs[:, 0].tolist() == [16, 16]
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert batch.scored.tolist() == [[False, *[True] * 15]] * 2
    assert batch.mask is None
    assert batch.tokens == 30
    assert pixels.symbols == 17  # the start symbol, too


def test_what_is_not_there_or_damaged_is_named(tmp_path):
    write_pictures(tmp_path / "toy", COUNTS)
    assert_refused(r"4 x 4 pixels cannot be parted into squares of 3; choose", prepared, tmp_path, pool=3)
    path = tmp_path / "toy/valid.images.npy"
    for harm in (lambda: path.write_bytes(path.read_bytes()[:-5]), path.unlink):
        harm()
        assert_refused(r"valid\.images\.npy cannot be read .* fetch toy again", prepared, tmp_path)
