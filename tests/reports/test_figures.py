"""Figures: drawn, readable in size, the same bytes twice."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from shared.claims.results import RunResults, load_results
from shared.reports.curves import read_curve, read_curves, training_curves
from shared.reports.exhibits import LINES, by_task, panels
from shared.reports.figures import COLOURS, drawing, legend_above, plot_line
from shared.tasks.translation.report import AlignmentOffsets, Heatmaps, ScoresByLength
from tests.refused import assert_refused
from tests.synthetic_runs import Variant, build

VARIANTS = {"rnnsearch-50": Variant("generated", 0.95, attention=0.9), "other": Variant("generated", 0.8, 0.02)}
VARIANTS |= {"elsewhere": Variant("corpus", 0.5)}


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


LOSS = {"metric": "loss", "label": "Loss"}


def of_exhibit(exhibit):
    def draw(runs, path):
        (figure,) = exhibit.draw({run.variant: run for run in runs}, path.parent / path.stem)
        for suffix in (".png", ".svg"):
            figure.path.with_suffix(suffix).replace(path.with_suffix(suffix))

    return draw


DRAWINGS = {"curves": lambda runs, path: training_curves(runs, path, **LOSS), "lengths": of_exhibit(ScoresByLength()),
            "offsets": of_exhibit(AlignmentOffsets()),
            "heatmaps": of_exhibit(Heatmaps("rnnsearch-50", "Seen."))}  # fmt: skip


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_rerun_gives_the_same_bytes(name, runs, tmp_path):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    DRAWINGS[name](runs, first)
    DRAWINGS[name](runs, second)
    drawn(first)
    assert first.read_bytes() == second.read_bytes()
    assert b"Software" not in first.read_bytes()
    assert b"tIME" not in first.read_bytes()
    vectors = [path.with_suffix(".svg").read_text() for path in (first, second)]
    assert vectors[0] == vectors[1]
    assert "<text" in vectors[0]
    assert all(said not in vectors[0] for said in ("<metadata", "<script", "@import"))
    assert not re.search(r"\son\w+=", vectors[0])
    leading = re.findall(r'(?:href="|url\()([^")]*)', vectors[0])
    assert [target for target in leading if not target.startswith(("#", "data:image/png;"))] == []
    assert "font-family: 'DejaVu Sans', 'Verdana', sans-serif" in vectors[0]


def test_bands_keep_their_colours(tmp_path):
    """Each with the light shade that its line's colour makes on white, however many shades text and lines have."""
    path, places = tmp_path / "figure.png", np.arange(60)
    with drawing(path, height=3.0) as canvas:
        axes = canvas.subplots()
        for index in range(LINES):
            values = 10.0 * index + np.sin(places) + places / 9
            plot_line(axes, index, LINES, (places, values, values - 3, values + 3), label=f"line {index}", marked=True)
        legend_above(canvas, axes)
    pixels = np.rint(255 * drawn(path)[..., :3].reshape(-1, 3))
    for colour in COLOURS[:LINES]:
        shade = np.rint(255 * (1 - 0.5 / LINES * (1 - np.array(to_rgb(colour)))))
        assert (abs(pixels - shade).max(axis=-1) <= 1).sum() > 2_000


def test_curves_gather_the_seeds(runs):
    points = read_curves(runs[0], metric="loss", split="valid")
    assert sorted(points) == list(range(25, 401, 25))
    assert {len(values) for values in points.values()} == {2}
    seeds = [read_curve(runs[0].curve(seed), metric="loss", split="valid") for seed in (1, 2)]
    assert points[400] == [values[400] for values in seeds]


def test_nothing_is_drawn_where_nothing_was_recorded(runs, tmp_path):
    path = tmp_path / "figure.png"
    assert not training_curves(runs, path, metric="no_such_metric", label="None")
    assert not path.exists()


def test_a_file_that_is_no_curve_is_refused(tmp_path):
    results = load_results(build(tmp_path, {"a": Variant("generated", 0.9)}, examples=5, seeds=(1,)))
    results["a"].curve(1).write_text("epoch,loss\n1,2\n")
    assert_refused(r"curve\.csv is not a training curve", read_curves, results["a"], metric="loss", split="valid")


def many(count, *, task="generated"):
    names = [f"{task}-{i:02d}" for i in range(count)]
    return {name: RunResults(Path(name), name, task, {1: {"bleu": 1.0}}, {}, {}, "word") for name in names}


def shown(found):
    return [(panel.name, panel.title, [run.variant for run in panel.runs]) for panel in found]


def test_chosen_panels_take_the_place_of_their_task_only():
    results = many(9) | many(1, task="corpus")
    results["generated-08"] = replace(results["generated-08"], not_run="too slow")
    chosen = {"scores": ["generated-03", "generated-01"], "feeding": ["generated-01", "generated-04", "generated-08"],
              "nothing to compare with": ["generated-01", "generated-08"], "alone": ["generated-05"],
              "never": ["generated-08", "unknown"]}  # fmt: skip
    assert shown(panels(results, chosen)) == [
        ("corpus", "Task corpus", ["corpus-00"]),
        ("generated_1", "Task generated, scores", ["generated-03", "generated-01"]),
        ("generated_2", "Task generated, feeding", ["generated-01", "generated-04"]),
        ("generated_3", "Task generated, alone", ["generated-05"]),
    ]


@pytest.mark.parametrize("names", [[f"generated-{i:02d}" for i in range(8)], ["generated-00", "corpus-00"]])
def test_panels_that_cannot_be_read_are_refused(names):
    assert_refused("the panel 'mixed' needs variants of", panels, many(8) | many(1, task="corpus"), {"mixed": names})
