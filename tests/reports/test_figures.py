"""Figures: drawn, readable in size, the same bytes twice."""

import numpy as np
import pytest
from matplotlib.image import imread
from synthetic_runs import Variant, build

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.reports.figures import (
    alignment_heatmaps,
    by_task,
    metric_by_covariate,
    offset_histogram,
    read_curves,
    training_curves,
)

VARIANTS = {
    "rnnsearch-50": Variant("generated", 0.95, attention=0.9),
    "other": Variant("generated", 0.8, 0.02),
    "elsewhere": Variant("corpus", 0.5),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs"), VARIANTS, examples=60, seeds=(1, 2)))


@pytest.fixture(scope="module")
def runs(results):
    return by_task(results)["generated"]


def drawn(path):
    """The picture as an array, after checking that it is 1,400 pixels wide and not blank."""
    picture = imread(path)
    assert picture.shape[1] == 1400
    assert picture[..., :3].min() < 0.5
    return picture


def test_variants_are_grouped_by_task(results):
    groups = {task: [run.variant for run in runs] for task, runs in by_task(results).items()}
    assert groups == {"corpus": ["elsewhere"], "generated": ["other", "rnnsearch-50"]}


DRAWINGS = {
    "metric": lambda runs, path: metric_by_covariate(
        runs, "bleu", "source_length", path, label="Source length", trained_to=15
    ),
    "curves": training_curves,
    "offsets": offset_histogram,
    "heatmaps": lambda runs, path: alignment_heatmaps(runs[1].attention(1), path),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_rerun_gives_the_same_bytes(name, runs, tmp_path):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    DRAWINGS[name](runs, first)
    DRAWINGS[name](runs, second)
    drawn(first)
    assert first.read_bytes() == second.read_bytes()
    assert b"Software" not in first.read_bytes()
    assert b"tIME" not in first.read_bytes()


def test_curves_gather_the_seeds(runs):
    points = read_curves(runs[0], metric="loss", split="valid")
    assert sorted(points) == list(range(25, 401, 25))
    assert {len(values) for values in points.values()} == {2}


def test_nothing_is_drawn_where_nothing_was_recorded(runs, tmp_path):
    path = tmp_path / "figure.png"
    assert not training_curves(runs, path, metric="no_such_metric")
    assert not offset_histogram(runs[:1], path)
    assert not alignment_heatmaps(tmp_path / "attention.npz", path)
    assert not path.exists()


def test_a_file_that_is_no_curve_is_refused(tmp_path):
    results = load_results(build(tmp_path, {"a": Variant("generated", 0.9)}, examples=5, seeds=(1,)))
    results["a"].curve(1).write_text("epoch,loss\n1,2\n")
    with pytest.raises(ReplicationError, match=r"curve\.csv is not a training curve"):
        read_curves(results["a"], metric="loss", split="valid")


def test_long_sentences_get_a_row_each(tmp_path):
    words = np.array([f"word{i}" for i in range(30)])
    arrays = {f"{key}_{i}": value for i in range(2)
              for key, value in (("weights", np.eye(30)), ("source", words), ("target", words))}  # fmt: skip
    np.savez(tmp_path / "attention.npz", **arrays)
    assert alignment_heatmaps(tmp_path / "attention.npz", tmp_path / "long.png")
    height, width, _ = drawn(tmp_path / "long.png").shape
    assert height > 1.8 * width
