"""Figures: drawn, readable in size, the same bytes twice; studies, as tables and as lines with bands and ticks."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from shared.claims.results import RunResults, load_results
from shared.reports import curves as studies
from shared.reports.curves import StudyLines, StudyPanel, read_curve, read_curves, training_curves
from shared.reports.document import Table, plain_text
from shared.reports.exhibits import LINES, KindReport, by_task, panels
from shared.reports.figures import COLOURS, drawing, legend_above, plot_line
from shared.reports.runs import cost, our_results, study_tables
from shared.tasks.translation.report import AlignmentOffsets, Heatmaps, ScoresByLength
from tests.refused import assert_refused
from tests.reports.drawing import draw_all
from tests.synthetic_runs import Variant, build, skip, study

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


SCORES = {
    "self_attention.operations_n256": 2.0**25, "self_attention.operations_n64": 2.0**21,
    "recurrent.operations_n64": 2.0**23, "recurrent.operations_d64": 1e9, "recurrent.path_n16": 16,
    "self_attention.share": 0.25, "cost_rule_base": 3.2832e18, "seconds": 1.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = build(tmp_path_factory.mktemp("runs"), {"base": Variant("table3", 0.9)}, examples=10, seeds=(1,))
    study(folder, "complexity", "table3", SCORES)
    return folder


@pytest.fixture
def measured(folder):
    return load_results(folder)


def cells(table):
    return [tuple(table.columns), *([plain_text(cell) for cell in row] for row in table.rows)]


def test_a_quantity_has_a_table_with_a_row_per_subject(measured):
    operations, path, share, others = (b for b in study_tables(measured["complexity"]) if isinstance(b, Table))
    assert cells(operations) == [("Operations", "d = 64", "n = 64", "n = 256"),
                                 ["self attention", "–", "2,097,152", "33,554,432"],
                                 ["recurrent", "1.00×10⁹", "8,388,608", "–"]]  # fmt: skip
    assert cells(path) == [("Path", "n = 16"), ["recurrent", "16"]]
    assert cells(share) == [("", "Share"), ["self attention", "0.250"]]
    assert cells(others) == [("Number", "Value"), ["Cost rule base", "3.28×10¹⁸"], ["Seconds", "1.500"]]


BANDS = {f"relu.mse{end}_m{m}": 0.5 for end in ("", "_low", "_high") for m in (16, 32)}
BANDS |= {"relu.mean_low_m16": 2, "linear.mse_m16": 2.5e-5}
WITHOUT_SIZE = {
    "relu.slope": 1.25, "relu.slope_low": 1.0, "relu.slope_high": 1.5, "softmax.slope": 2.0, "relu.floats": 8,
    "softmax.floats": 64, "relu.gain": 0.25,
}  # fmt: skip
MANY_SIZES = {f"full_attention.path_n{n}": n for n in range(1, 10)} | {f"linear.path_n{n}": n for n in range(1, 9)}


@pytest.mark.parametrize(("scores", "expected"), [
    (BANDS, [  # whose ends are left to figures
        [("MSE", "m = 16", "m = 32"), ["relu", "0.500", "0.500"], ["linear", "2.50×10⁻⁵", "–"]],
        [("Mean low", "m = 16"), ["relu", "2"]],
    ]),
    (WITHOUT_SIZE, [
        [("", "Slope", "Floats"), ["relu", "1.250 [1,\N{NO-BREAK SPACE}1.500]", "8"], ["softmax", "2", "64"]],
        [("", "Gain"), ["relu", "0.250"]],
    ]),
    (MANY_SIZES, [[("Path", "full attention", "linear"), *([f"n = {n}", *[f"{n}"] * 2] for n in range(1, 9)),
                   ["n = 9", "9", "–"]]]),
])  # fmt: skip
def test_sizes_are_columns_or_rows_of_one_table_for_the_same_subjects(tmp_path, scores, expected):
    study(tmp_path, "study", "table3", scores)
    found = study_tables(load_results(tmp_path)["study"])
    assert [cells(block) for block in found if isinstance(block, Table)] == expected


def test_a_study_is_no_row_among_translations_nor_of_the_cost(measured):
    tasks = by_task(measured)
    blocks = *our_results(tasks, measured, KindReport()), *cost(tasks)
    tables = [block for block in blocks if isinstance(block, Table)]
    naming = [table for table in tables if any(plain_text(row[0]) == "complexity" for row in table.rows)]
    assert naming == []
    assert "Operations" in [table.columns[0] for table in tables]


LAYERS = {"softmax": "softmax", "lsh": "LSH", "linear": "linear", "identity": "identity"}
KERNELS = {"positive_orthogonal": "positive", "trigonometric_iid": "trigonometric"}
TIME = StudyPanel("scaling", "seconds", "Length", "Seconds", LAYERS)
MEMORY = StudyPanel("scaling", "mebibytes", "Length", "MiB", LAYERS)
ERROR = StudyPanel("kernels", "error", "Features", "MSE", KERNELS)
RATIO = StudyPanel("kernels", "ratio", "Angle (degrees)", "Ratio", KERNELS, log_x=False)


LENGTHS = {"softmax": range(9, 13), "linear": range(9, 17), "identity": range(9, 17)}
FEATURES = (16, 32, 64, 128, 256)


def scaling():
    """Seconds and MiB of layers by length."""
    found = {}
    for subject, powers in LENGTHS.items():
        for length in (2**power for power in powers):
            quadratic = length**2 * 2e-8 if subject == "softmax" else 0.0
            found[f"{subject}.seconds_n{length}"] = length * 1e-5 + quadratic
            found[f"{subject}.mebibytes_n{length}"] = length / 512 + 50 * quadratic
    return found


def kernels():
    """Errors by features, with the ends of bands, and ratios by angle."""
    found = {}
    for subject, worse in {"positive_orthogonal": 1.0, "trigonometric_iid": 4e5}.items():
        for features in FEATURES:
            error = worse * 1e-3 / features
            found |= {
                f"{subject}.error_m{features}": error, f"{subject}.error_low_m{features}": error / 1.5,
                f"{subject}.error_high_m{features}": error * 1.5,
            }  # fmt: skip
        found |= {f"{subject}.ratio_a{angle}": math.exp(angle / 30) * worse for angle in range(0, 181, 10)}
    return found


@pytest.fixture(scope="module")
def study_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    study(folder, "scaling", "copy", scaling())
    study(folder, "kernels", "proteins", kernels())
    skip(folder, "depth", "proteins", "for no reason")
    return load_results(folder)


@pytest.fixture
def drawn_panels(monkeypatch):
    """The panels of every figure, to be looked at once the pictures have been written."""
    figures, legend = [], studies.legend_above
    monkeypatch.setattr(
        studies, "legend_above", lambda canvas, *panels: (figures.append(panels), legend(canvas, *panels))
    )
    return figures


def changed(run, *seeds):
    """The run with the metrics of seeds 1, 2, … in place of its own."""
    return replace(run, metrics=dict(enumerate(seeds, start=1)))


def test_what_was_not_run_has_no_lines(study_results):
    assert replace(TIME, variant="depth").lines(study_results) == {}
    assert replace(TIME, variant="unheard of").lines(study_results) == {}
    assert replace(TIME, quantity="unheard_of").lines(study_results) == {}


def test_bands_end_where_their_own_quantities_are(study_results):
    sizes, values, low, high = ERROR.lines(study_results)["positive"]
    assert sizes == list(FEATURES)
    assert low == pytest.approx([value / 1.5 for value in values])
    assert high == pytest.approx([value * 1.5 for value in values])


def test_ends_of_bands_are_means_over_seeds(study_results):
    seeds = [{"positive_orthogonal.error_m8": 2.0, "positive_orthogonal.error_low_m8": low} for low in (0.5, 1.5)]
    assert ERROR.lines({"kernels": changed(study_results["kernels"], *seeds)}) == {
        "positive": [[8], [2.0], [1.0], [2.0]]
    }


def test_sizes_of_two_dimensions_are_no_line(study_results):
    run = changed(study_results["scaling"], {"linear.seconds_n8": 1.0, "linear.seconds_d8": 1.0})
    assert_refused(r"linear\.seconds by several dimensions \(d, n\)", TIME.lines, {"scaling": run})


def test_lines_of_one_title_are_panels_of_one_figure(study_results, tmp_path, drawn_panels):
    exhibits = [
        StudyLines("One layer.", [TIME, MEMORY]), StudyLines("Errors", [ERROR]),
        StudyLines("Depth", [replace(ERROR, variant="depth")]), StudyLines("By angle", [RATIO]),
    ]  # fmt: skip
    figures = draw_all(exhibits, study_results, tmp_path)
    assert [figure.path.name for figure in figures] == ["study_one-layer.png", "study_errors.png", "study_by-angle.png"]
    assert [re.findall(r"\(([^)]+)\)", figure.caption) for figure in figures] == [
        ["0.377", "0.655", "24.78", "128"], ["3.91×10⁻⁶", "1.562"], ["403.4", "161,371,517"]
    ]  # fmt: skip
    assert figures[1].caption.startswith("MSE, at the right: lowest for positive (")
    assert {*tmp_path.glob("*.png")} == {figure.path for figure in figures}
    assert {imread(figure.path).shape[1] for figure in figures} == {1400}
    assert [[axes.get_ylabel() for axes in panels] for panels in drawn_panels[:3]] == [
        ["Seconds", "MiB"],
        ["MSE"],
        ["Ratio"],
    ]


def test_a_label_has_one_colour_in_all_panels(study_results, tmp_path, drawn_panels):
    other = replace(MEMORY, subjects={"linear": "linear", "softmax": "softmax"})
    figures = StudyLines("One layer.", [TIME, other]).draw(study_results, tmp_path)
    (panels,) = drawn_panels
    colours = {line.get_label(): line.get_color() for line in panels[0].get_lines()}
    assert colours == {"softmax": COLOURS[0], "linear": COLOURS[2], "identity": COLOURS[3]}
    assert {line.get_label(): line.get_color() for line in panels[1].get_lines()}.items() < colours.items()
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["softmax", "linear", "identity"]
    assert len(figures) == 1


@pytest.mark.parametrize(("value", "scale"), [(2.0, "log"), (0.0, "linear")])
def test_what_is_not_positive_does_not_break_a_logarithmic_axis(study_results, tmp_path, drawn_panels, value, scale):
    numbers = {"error": value, "error_low": -1.0, "error_high": 4.0}
    scores = {f"positive_orthogonal.{name}_m{m}": of for name, of in numbers.items() for m in FEATURES}
    (figure,) = StudyLines("Errors", [ERROR]).draw({"kernels": changed(study_results["kernels"], scores)}, tmp_path)
    assert figure.path.exists()
    assert drawn_panels[0][0].get_yscale() == scale


def test_more_lines_than_colours_are_refused(study_results, tmp_path):
    many = replace(TIME, subjects={f"s{i}": f"label {i}" for i in range(8)})
    assert_refused(
        r"'One layer\.' has more than 7 lines", StudyLines("One layer.", [many]).draw, study_results, tmp_path
    )
