"""Studies in reports: numbers by quantity and size as tables, and as lines with bands and plain ticks."""

import math
import re
from dataclasses import replace

import pytest
from matplotlib.image import imread

from shared.claims.results import load_results
from shared.reports import curves as studies
from shared.reports.curves import StudyLines, StudyPanel
from shared.reports.document import Table, plain_text
from shared.reports.exhibits import KindReport, by_task
from shared.reports.figures import COLOURS
from shared.reports.runs import cost, our_results, study_tables
from tests.refused import assert_refused
from tests.reports.drawing import draw_all
from tests.synthetic_runs import Variant, build, skip, study

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
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    study(folder, "scaling", "copy", scaling())
    study(folder, "kernels", "proteins", kernels())
    skip(folder, "depth", "proteins", "for no reason")
    return load_results(folder)


@pytest.fixture
def drawn(monkeypatch):
    """The panels of every figure, to be looked at once the pictures have been written."""
    figures, legend = [], studies.legend_above
    monkeypatch.setattr(
        studies, "legend_above", lambda canvas, *panels: (figures.append(panels), legend(canvas, *panels))
    )
    return figures


def changed(run, *seeds):
    """The run with the metrics of seeds 1, 2, … in place of its own."""
    return replace(run, metrics=dict(enumerate(seeds, start=1)))


def test_what_was_not_run_has_no_lines(results):
    assert replace(TIME, variant="depth").lines(results) == {}
    assert replace(TIME, variant="unheard of").lines(results) == {}
    assert replace(TIME, quantity="unheard_of").lines(results) == {}


def test_bands_end_where_their_own_quantities_are(results):
    sizes, values, low, high = ERROR.lines(results)["positive"]
    assert sizes == list(FEATURES)
    assert low == pytest.approx([value / 1.5 for value in values])
    assert high == pytest.approx([value * 1.5 for value in values])


def test_ends_of_bands_are_means_over_seeds(results):
    seeds = [{"positive_orthogonal.error_m8": 2.0, "positive_orthogonal.error_low_m8": low} for low in (0.5, 1.5)]
    assert ERROR.lines({"kernels": changed(results["kernels"], *seeds)}) == {"positive": [[8], [2.0], [1.0], [2.0]]}


def test_sizes_of_two_dimensions_are_no_line(results):
    run = changed(results["scaling"], {"linear.seconds_n8": 1.0, "linear.seconds_d8": 1.0})
    assert_refused(r"linear\.seconds by several dimensions \(d, n\)", TIME.lines, {"scaling": run})


def test_lines_of_one_title_are_panels_of_one_figure(results, tmp_path, drawn):
    exhibits = [
        StudyLines("One layer.", [TIME, MEMORY]), StudyLines("Errors", [ERROR]),
        StudyLines("Depth", [replace(ERROR, variant="depth")]), StudyLines("By angle", [RATIO]),
    ]  # fmt: skip
    figures = draw_all(exhibits, results, tmp_path)
    assert [figure.path.name for figure in figures] == ["study_one-layer.png", "study_errors.png", "study_by-angle.png"]
    assert [re.findall(r"\(([^)]+)\)", figure.caption) for figure in figures] == [
        ["0.377", "0.655", "24.78", "128"], ["3.91×10⁻⁶", "1.562"], ["403.4", "161,371,517"]
    ]  # fmt: skip
    assert figures[1].caption.startswith("MSE, at the right: lowest for positive (")
    assert {*tmp_path.glob("*.png")} == {figure.path for figure in figures}
    assert {imread(figure.path).shape[1] for figure in figures} == {1400}
    assert [[axes.get_ylabel() for axes in panels] for panels in drawn[:3]] == [["Seconds", "MiB"], ["MSE"], ["Ratio"]]


def test_a_label_has_one_colour_in_all_panels(results, tmp_path, drawn):
    other = replace(MEMORY, subjects={"linear": "linear", "softmax": "softmax"})
    figures = StudyLines("One layer.", [TIME, other]).draw(results, tmp_path)
    (panels,) = drawn
    colours = {line.get_label(): line.get_color() for line in panels[0].get_lines()}
    assert colours == {"softmax": COLOURS[0], "linear": COLOURS[2], "identity": COLOURS[3]}
    assert {line.get_label(): line.get_color() for line in panels[1].get_lines()}.items() < colours.items()
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["softmax", "linear", "identity"]
    assert len(figures) == 1


@pytest.mark.parametrize(("value", "scale"), [(2.0, "log"), (0.0, "linear")])
def test_what_is_not_positive_does_not_break_a_logarithmic_axis(results, tmp_path, drawn, value, scale):
    numbers = {"error": value, "error_low": -1.0, "error_high": 4.0}
    scores = {f"positive_orthogonal.{name}_m{m}": of for name, of in numbers.items() for m in FEATURES}
    (figure,) = StudyLines("Errors", [ERROR]).draw({"kernels": changed(results["kernels"], scores)}, tmp_path)
    assert figure.path.exists()
    assert drawn[0][0].get_yscale() == scale


def test_more_lines_than_colours_are_refused(results, tmp_path):
    many = replace(TIME, subjects={f"s{i}": f"label {i}" for i in range(8)})
    assert_refused(r"'One layer\.' has more than 7 lines", StudyLines("One layer.", [many]).draw, results, tmp_path)
