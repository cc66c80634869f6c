"""What a report shows of models of sequences: studies, and curves of trainings that may have diverged."""

import math
from dataclasses import replace

import pytest

from shared.claims.results import load_results
from shared.reports import curves as of_training
from shared.reports.curves import StudyLines, StudyPanel, read_apart, read_curves, training_curves
from shared.reports.figures import COLOURS
from shared.reports.page import render
from shared.reports.runs import score_tables
from shared.tasks.sequences.report import curves, further_splits
from tests.reports.drawing import draw_all
from tests.tasks.sequences.synthetic_sequences import MODELS, UPDATES, build

ASKED = [
    StudyLines("One layer", [StudyPanel("scaling", "seconds", "Length", "Seconds", {"softmax": "softmax"})]),
    curves({"stability": ["transformer", "trigonometric", "never-run"]}),
]
LOSS = {"metric": "loss", "label": "Loss"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


@pytest.fixture
def drawn(monkeypatch):
    """The axes of every figure of curves, to be looked at once the pictures have been written."""
    found, plot = [], of_training.plot_curves
    monkeypatch.setattr(of_training, "plot_curves", lambda axes, *a, **k: (found.append(axes), plot(axes, *a, **k)))
    return found


def test_the_figures_come_in_order_and_say_what_crosses_are_where_there_are_any(results, tmp_path):
    blocks = draw_all(ASKED, results, tmp_path / "figures")
    names = [block.path.stem for block in blocks]
    assert (names[0], len(names)) == ("study_one-layer", 7)
    assert "never-run" not in render(blocks, "md", title="", folder=tmp_path)
    crossed = [block.path.stem for block in blocks if "crosses" in block.caption]
    assert crossed == ["training_loss_proteins", "training_error_proteins"]


def test_further_splits_have_tables_of_what_was_measured_on_them(results):
    scores = {"token_accuracy": 30.0, "token_accuracy@positive": 12.0, "test_families.token_accuracy": 17.5}
    run = replace(results["transformer"], metrics=dict.fromkeys((1, 2, 3), scores), mean=scores)
    own, further = (blocks[0] for blocks in (score_tables([run]), further_splits([run])))
    assert "test_families" in further.columns[0]
    assert sum("17.5" in cell for cell in further.rows[0]) == 1
    swapped = [any("same weights in positive" in head for head in each.columns) for each in (own, further)]
    assert swapped == [True, False]


def test_what_is_no_number_is_no_part_of_a_curve(results):
    points = read_curves(results["trigonometric"], metric="loss", split="valid")
    assert [len(points[place]) for place in (100, 200, 300, 400)] == [3, 2, 2, 1]
    assert all(math.isfinite(value) for values in points.values() for value in values)
    assert 130 not in points


def test_seeds_are_apart_where_one_ended_before_its_time(results):
    seeds = read_apart(results["trigonometric"], metric="loss", split="valid")
    assert [(max(curve), ended) for curve, ended in seeds] == [(125, True), (300, True), (UPDATES, False)]
    assert results["cifar10-linear"].runs[1]["updates"] < UPDATES  # by patience, which is its time
    assert not any(
        read_apart(results[each], metric="loss", split="valid") for each in ("transformer", "cifar10-linear")
    )
    assert read_apart(results["trigonometric"], metric="bleu", split="valid") == []


def test_a_diverged_variant_has_a_line_for_each_seed_and_crosses(results, tmp_path, drawn):
    runs = [results[name] for name in ("transformer", "trigonometric")]
    assert training_curves(runs, tmp_path / "a.png", **LOSS, diverging=True)
    lines = [line for line in drawn[0].get_lines() if line.get_color() == COLOURS[1]]
    crosses = {line.get_xdata()[0]: line.get_ydata()[0] for line in lines if line.get_marker() == "X"}
    assert sorted(crosses) == [125, 300]
    assert sorted(max(line.get_xdata()) for line in lines if line.get_marker() != "X") == [125, 300, UPDATES]
    assert crosses[125] in read_curves(runs[1], metric="loss", split="valid")[125]
    (legend,) = drawn[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["transformer", "trigonometric"]


def test_a_variant_of_which_all_seeds_diverged_at_once_is_drawn(results, tmp_path, drawn):
    folder = build(tmp_path / "runs", {"lost": replace(MODELS["trigonometric"], ends=(25, 25))}, seeds=(1, 2))
    assert training_curves([load_results(folder)["lost"]], tmp_path / "a.png", **LOSS, diverging=True)
    assert [line.get_xdata()[0] for line in drawn[0].get_lines() if line.get_marker() == "X"] == [25, 25]


@pytest.mark.parametrize(
    ("variants", "metric", "scale"),
    [("copy-softmax copy-linear", "error", "linear"), ("transformer trigonometric", "loss", "log")],
)
def test_losses_far_apart_are_on_a_logarithmic_scale(results, tmp_path, drawn, variants, metric, scale):
    runs = [results[name] for name in variants.split()]
    assert training_curves(runs, tmp_path / "a.png", metric=metric, label="y", diverging=True)
    assert training_curves(runs, tmp_path / "b.png", metric=metric, label="y")
    assert [axes.get_yscale() for axes in drawn] == [scale, "linear"]
