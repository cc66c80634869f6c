"""Studies in reports: numbers by quantity and size, and no place among translations."""

import json

import pytest
from synthetic_runs import Variant, build, study

from shared.claims.results import load_results
from shared.reports import studies
from shared.reports.document import Table
from shared.reports.panels import by_task
from shared.reports.sections import cost, our_results
from shared.reports.summary import summarize

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
    return [table.columns, *([getattr(cell, "text", cell) for cell in row] for row in table.rows)]


def test_a_quantity_has_a_table_with_a_row_per_subject(results):
    operations, path, share, others = (
        b for b in studies.study(results["complexity"]) if isinstance(b, Table)
    )
    assert cells(operations) == [
        ("Operations", "d = 64", "n = 64", "n = 256"),
        ["self attention", "–", "2,097,152", "33,554,432"],
        ["recurrent", "1.000×10⁹", "8,388,608", "–"],
    ]
    assert cells(path) == [("Path", "n = 16"), ["recurrent", "16"]]
    assert cells(share) == [("Share", ""), ["self attention", "0.250"]]
    assert cells(others) == [("Number", "Value"), ["Cost rule base", "3.283×10¹⁸"], ["Seconds", "1.500"]]


def test_a_study_is_no_row_among_translations_nor_of_the_cost(results):
    tasks = by_task(results)
    tables = [block for block in (*our_results(tasks, results), *cost(tasks)) if isinstance(block, Table)]
    naming = [
        table for table in tables if any(getattr(row[0], "text", "") == "complexity" for row in table.rows)
    ]
    assert naming == []
    assert "Operations" in [table.columns[0] for table in tables]


def test_a_study_is_no_row_in_the_summary(tmp_path, results):
    report = tmp_path / "quick/paper"
    report.mkdir(parents=True)
    (report / "claims.json").write_text(json.dumps([]))
    means = {name: dict(result.mean) for name, result in results.items()}
    (report / "metrics.json").write_text(json.dumps({"variants": means}))
    (report / "claims.json").write_text(json.dumps([{**dict.fromkeys(("metric", "seeds", "n")), "id": "T1-C1",
        "statement": "s", "verdict": "not tested", "paper": "P"}]))  # fmt: skip
    summarize(tmp_path, [])
    page = (tmp_path / "README.md").read_text()
    assert "`base`" in page
    assert "complexity" not in page
