"""Metrics over a hyper-parameter."""

import pytest

from replications.self_attentive import sweeps
from replications.self_attentive.sweeps import Sweep
from shared.claims.results import load_results
from tests.reports.drawing import draw_all
from tests.tasks.classification.synthetic_classification import build

PENALTY = Sweep("The penalty", "Coefficient", {0.0: "penalty-0", 1.0: "attention", 3.0: "never-run"},
                ["accuracy", "redundancy"], log=True)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


def test_zero_has_its_place_on_a_logarithmic_axis(results, tmp_path, monkeypatch):
    """The axes are looked at once the picture has been written."""
    drawn, ticks = [], sweeps.place_ticks
    monkeypatch.setattr(sweeps, "place_ticks", lambda axes, *a, **k: (drawn.append(axes), ticks(axes, *a, **k)))
    (figure,) = draw_all([PENALTY], results, tmp_path)
    assert "lowest for Coefficient 1 (0.100), highest for Coefficient 0 (0.900)" in figure.caption
    assert [axes.get_xscale() for axes in drawn[:2]] == ["symlog", "symlog"]
    assert [[label.get_text() for label in axes.get_xticklabels()] for axes in drawn[:2]] == [["0", "1"]] * 2
    assert [axes.get_ylabel() for axes in drawn[:2]] == ["Accuracy (%)", "Redundancy of the rows of A"]
    assert list(PENALTY.variants()) == ["penalty-0", "attention", "never-run"]
    assert list(PENALTY.measures()) == ["accuracy", "redundancy"]


def test_one_point_is_no_curve(results, tmp_path):
    alone = Sweep("Alone", "x", {1.0: "attention", 2.0: "never-run"}, ["accuracy"])
    assert not alone.draw(results, tmp_path)
    assert not [*tmp_path.iterdir()]
