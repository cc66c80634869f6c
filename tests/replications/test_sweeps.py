"""Metrics over a hyper-parameter."""

from dataclasses import replace

import pytest
from matplotlib.image import imread

from replications.self_attentive import sweeps
from replications.self_attentive.sweeps import Sweep
from shared.claims.results import load_results
from tests.tasks.classification.synthetic_classification import build

PENALTY = Sweep("The penalty", "Coefficient", {0.0: "penalty-0", 1.0: "attention", 3.0: "never-run"},
                ["accuracy", "redundancy"], log=True)  # fmt: skip
ROWS = Sweep("Rows", "Rows r", {8: "attention", 1: "rows-1"}, ["accuracy", "redundancy"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


@pytest.mark.parametrize("sweep", [PENALTY, ROWS])
def test_a_sweep_is_drawn_the_same_twice(sweep, results, tmp_path):
    for name in ("first", "second"):
        (figure,) = sweep.draw(results, tmp_path / name)
    assert imread(figure.path).shape[1] == 1400
    assert figure.path.read_bytes() == (tmp_path / "first" / figure.path.name).read_bytes()


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("accuracy", "Accuracy (%)"),
        ("nll_per_token", "NLL per word, nats"),
        ("test_long.nll_per_token", "NLL per word, nats, split test_long"),
    ],
)
def test_an_axis_says_its_unit_and_split_in_words(results, metric, label):
    assert sweeps._label(metric, [replace(results["attention"], token="word")]) == label


def test_zero_has_its_place_on_a_logarithmic_axis(results, tmp_path, monkeypatch):
    """The axes are looked at once the picture has been written."""
    drawn, ticks = [], sweeps.place_ticks
    monkeypatch.setattr(sweeps, "place_ticks", lambda axes, *a, **k: (drawn.append(axes), ticks(axes, *a, **k)))
    (figure,) = PENALTY.draw(results, tmp_path)
    assert figure.path.name == "sweep_the-penalty.png"
    assert figure.caption.startswith(
        "Redundancy of the rows of A: lowest for Coefficient 1 (0.100), highest for Coefficient 0 (0.900). "
        "The penalty. Mean over seeds; bars: 95 % intervals"
    )
    assert [axes.get_xscale() for axes in drawn] == ["symlog", "symlog"]
    assert [[label.get_text() for label in axes.get_xticklabels()] for axes in drawn] == [["0", "1"]] * 2
    assert [axes.get_ylabel() for axes in drawn] == ["Accuracy (%)", "Redundancy of the rows of A"]


def test_one_point_is_no_curve(results, tmp_path):
    alone = Sweep("Alone", "x", {1.0: "attention", 2.0: "never-run"}, ["accuracy"])
    assert not alone.draw(results, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_checker_sees_names_without_drawing():
    assert list(PENALTY.variants()) == ["penalty-0", "attention", "never-run"]
    assert list(PENALTY.measures()) == ["accuracy", "redundancy"]
