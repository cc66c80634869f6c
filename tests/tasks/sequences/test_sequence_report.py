"""What a report shows of models of sequences: further splits, and curves of trainings that may have diverged."""

import math
from dataclasses import replace

import pytest

from shared.claims.results import load_results
from shared.reports import curves as of_training
from shared.reports.curves import DIVERGED, read_apart, read_curves, training_curves
from shared.reports.figures import COLOURS
from shared.reports.runs import score_tables
from shared.tasks.sequences.report import further_splits
from tests.synthetic_runs import write_metrics, write_training

UPDATES = 400
ENDS = {"transformer": (400, 400, 400), "trigonometric": (125, 300, 400), "patient": (200, 300, 400)}
"""Made-up models, and the update after which each seed has ended, by divergence or by patience."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, ends in ENDS.items():
        for seed, end in enumerate(ends, start=1):
            diverged = name == "trigonometric" and end < UPDATES
            curve = [[step, "valid", "loss", 2.5 + seed / step] for step in range(25, end + 1, 25)]
            curve += [[end + 5, "valid", "loss", math.nan]] if diverged else []
            record = {"updates": end, "parameter_count": 1_000, "stopped_because": DIVERGED if diverged else "made up"}
            write_training(folder / name / f"train/seed{seed}", record, curve)
        write_metrics(folder / name, name, "proteins", {seed: {"perplexity": 9.0} for seed in (1, 2, 3)}, "residue")
    return load_results(folder)


@pytest.fixture
def drawn(monkeypatch):
    """The axes of every figure of curves, to be looked at once the pictures have been written."""
    found, plot = [], of_training.plot_curves
    monkeypatch.setattr(of_training, "plot_curves", lambda axes, *a, **k: (found.append(axes), plot(axes, *a, **k)))
    return found


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
    assert results["patient"].runs[1]["updates"] < UPDATES  # by patience, which is its time
    assert not any(read_apart(results[each], metric="loss", split="valid") for each in ("transformer", "patient"))
    assert read_apart(results["trigonometric"], metric="bleu", split="valid") == []


def test_a_diverged_variant_has_a_line_for_each_seed_and_crosses(results, tmp_path, drawn):
    runs = [results[name] for name in ("transformer", "trigonometric")]
    assert training_curves(runs, tmp_path / "a.png", metric="loss", label="Loss", diverging=True)
    lines = [line for line in drawn[0].get_lines() if line.get_color() == COLOURS[1]]
    crosses = {line.get_xdata()[0]: line.get_ydata()[0] for line in lines if line.get_marker() == "X"}
    assert sorted(crosses) == [125, 300]
    assert sorted(max(line.get_xdata()) for line in lines if line.get_marker() != "X") == [125, 300, UPDATES]
    assert crosses[125] in read_curves(runs[1], metric="loss", split="valid")[125]
    (legend,) = drawn[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["transformer", "trigonometric"]
