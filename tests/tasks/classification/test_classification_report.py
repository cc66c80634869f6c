"""The whole report of made-up classifiers, beside the facts of Lin et al. (2017)."""

import json
import re
from itertools import pairwise

import pytest

from replications.self_attentive.sweeps import Sweep
from shared.claims.results import load_results
from shared.reports.curves import LearningCurves
from shared.reports.report import write_report
from shared.reports.site import summarize
from shared.tasks.classification.figures import CURVES, HeatRows, HeatTexts
from shared.tasks.classification.report import REPORT
from tests.made_claims import claim, compared, paper_folder
from tests.reports.drawing import amiss, draw_all
from tests.tasks.classification.synthetic_classification import CLASSIFIERS, Classifier, build

SWEEP = Sweep("The penalty", "Coefficient", {0: "penalty-0", 1: "attention"}, ["accuracy"])
FIGURES = [
    SWEEP, HeatTexts("attention", "What it looks at."),
    HeatRows("With and without the penalty.", ["attention", "penalty-0"]), LearningCurves(curves=CURVES),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    paper = paper_folder(
        root / "papers/self_attentive", claim(1, primary=compared("greater", "accuracy", "attention", "max")),
        claim(2, primary=compared("greater", "accuracy", "max", "rows-1")), paper="self_attentive",
    )  # fmt: skip
    better = build(root / "runs", CLASSIFIERS, texts=300, seeds=(1, 2, 3, 4, 5))
    write_report(paper, better, root / "reports/quick/self_attentive", scale="quick", figures=FIGURES, kind=REPORT)
    summarize(root / "reports", [])
    return root / "reports/quick/self_attentive"


def text(folder, name="README.md"):
    return (folder / name).read_text(encoding="utf-8")


def test_the_verdicts_follow_the_made_up_effects(folder):
    verdicts = [entry["verdict"] for entry in json.loads(text(folder, "claims.json"))]
    assert verdicts == ["reproduced", "contradicted"]


@pytest.mark.parametrize(
    "expected",
    [
        "## Paired tests",
        "| T99-C1 | `attention` – `max` | all | 1 | +",
        "Accuracy by set, %",
        "Redundancy of the rows of A",
        "![What it looks at](figures/heat_attention.png)",
        "](figures/heat_rows_attention_penalty-0.png)",
        "No counterpart in the paper. The penalty. Mean over seeds;",
        "Share of the validation split classified wrongly",
    ],
)
def test_the_page_says(folder, expected):
    assert expected in text(folder)


def test_html_shows_coloured_words_in_the_place_of_their_pictures(folder):
    assert amiss(folder) == []
    html = text(folder, "index.html")
    assert html.count('<figure class="heat">') == 1
    assert html.count('<figure class="explorer"') == 1
    assert html.count("<img ") == len(list((folder / "figures").glob("*.png"))) - 1


def test_every_table_row_has_as_many_cells_as_its_head(folder):
    for page in (text(folder), text(folder.parents[1])):
        lines = [re.sub(r"`[^`]*`|\\\|", "", line) for line in page.splitlines()]
        widths = [line.count("|") if line.startswith("|") else 0 for line in lines]
        assert all(a == b for a, b in pairwise(widths) if a and b)


def test_all_figures_of_a_paper(folder, tmp_path):
    """Those that were asked for and can be drawn, in their order."""
    results = load_results(folder.parents[2] / "runs")
    exhibits = [
        *FIGURES[:2], HeatTexts("max", "It does not attend."), HeatTexts("never-run", "Not run."),
        HeatRows("With and without.", ["attention", "penalty-0", "max"]),
        HeatRows("Alone.", ["attention", "never-run"]), LearningCurves({"all": list(CLASSIFIERS)}, CURVES),
    ]  # fmt: skip
    figures = draw_all(exhibits, results, tmp_path)
    assert [figure.path.name for figure in figures] == [
        "sweep_the-penalty.png", "heat_attention.png", "heat_rows_attention_penalty-0_max.png",
        "training_loss_opinions.png", "training_error_opinions.png",
    ]  # fmt: skip
    assert {figure.path for figure in figures} == set(tmp_path.glob("*.png"))
    assert figures[-1].caption.startswith("Task opinions, all. Share of the validation split classified wrongly")


def test_nothing_is_drawn_of_runs_that_left_nothing(tmp_path):
    results = load_results(build(tmp_path / "runs", {"a": Classifier(0.5, curves=False)}, texts=10))
    assert draw_all([HeatTexts("a", "."), HeatRows(".", ["a"]), *REPORT.figures], results, tmp_path / "figures") == []


def test_curves_of_classifiers_are_per_text(folder, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr("shared.reports.curves.draw_curves", lambda *_, y, **__: bool(said.append(y)) or True)
    results = load_results(folder.parents[2] / "runs")
    LearningCurves(curves=CURVES).draw(results, tmp_path)
    assert said == ["Validation loss (nats per text)", "Validation error (share of texts)"]
