"""Studies in reports: numbers by quantity and size, and no place among translations."""

import pytest

from shared.claims.results import load_results
from shared.reports import studies
from shared.reports.document import Table, plain_text
from shared.reports.exhibits import KindReport, by_task
from shared.reports.runs import cost, our_results
from tests.synthetic_runs import Variant, build, study

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
def results(folder):
    return load_results(folder)


def cells(table):
    return [tuple(table.columns), *([plain_text(cell) for cell in row] for row in table.rows)]


def test_a_quantity_has_a_table_with_a_row_per_subject(results):
    operations, path, share, others = (b for b in studies.study_tables(results["complexity"]) if isinstance(b, Table))
    assert cells(operations) == [
        ("Operations", "d = 64", "n = 64", "n = 256"),
        ["self attention", "–", "2,097,152", "33,554,432"],
        ["recurrent", "1.00×10⁹", "8,388,608", "–"],
    ]
    assert cells(path) == [("Path", "n = 16"), ["recurrent", "16"]]
    assert cells(share) == [("", "Share"), ["self attention", "0.250"]]
    assert cells(others) == [("Number", "Value"), ["Cost rule base", "3.28×10¹⁸"], ["Seconds", "1.500"]]


def tables(tmp_path, scores):
    study(tmp_path, "study", "table3", scores)
    found = studies.study_tables(load_results(tmp_path)["study"])
    return [cells(block) for block in found if isinstance(block, Table)]


def test_ends_of_bands_are_left_to_figures(tmp_path):
    scores = {f"relu.mse{end}_m{m}": 0.5 for end in ("", "_low", "_high") for m in (16, 32)}
    assert tables(tmp_path, scores | {"relu.mean_low_m16": 2, "linear.mse_m16": 2.5e-5}) == [
        [("MSE", "m = 16", "m = 32"), ["relu", "0.500", "0.500"], ["linear", "2.50×10⁻⁵", "–"]],
        [("Mean low", "m = 16"), ["relu", "2"]],
    ]


def test_what_has_no_size_is_in_one_table_for_the_same_subjects(tmp_path):
    scores = {
        "relu.slope": 1.25, "relu.slope_low": 1.0, "relu.slope_high": 1.5, "softmax.slope": 2.0, "relu.floats": 8,
        "softmax.floats": 64, "relu.gain": 0.25,
    }  # fmt: skip
    assert tables(tmp_path, scores) == [
        [("", "Slope", "Floats"), ["relu", "1.250 [1,\N{NO-BREAK SPACE}1.500]", "8"], ["softmax", "2", "64"]],
        [("", "Gain"), ["relu", "0.250"]],
    ]


def test_many_sizes_stand_below_each_other(tmp_path):
    scores = {f"{subject}.path_n{n}": n for subject in ("full_attention", "linear") for n in range(1, 10)}
    del scores["linear.path_n9"]
    (table,) = tables(tmp_path, scores)
    assert table[:2] == [("Path", "full attention", "linear"), ["n = 1", "1", "1"]]
    assert table[9] == ["n = 9", "9", "–"]


def test_a_study_is_no_row_among_translations_nor_of_the_cost(results):
    tasks = by_task(results)
    tables = [block for block in (*our_results(tasks, results, KindReport()), *cost(tasks)) if isinstance(block, Table)]
    naming = [table for table in tables if any(plain_text(row[0]) == "complexity" for row in table.rows)]
    assert naming == []
    assert "Operations" in [table.columns[0] for table in tables]
