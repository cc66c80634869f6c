"""The whole report of made-up classifiers, judged by the claims of Lin et al. (2017)."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from shared.reports.report import write_report
from shared.reports.summary import summarize
from shared.reports.sweeps import Sweep
from shared.tasks.classification.report import classification_figures
from tests.tasks.classification.synthetic_classification import CLASSIFIERS, build

PAPER = Path(__file__).parents[3] / "replications" / "self_attentive"


def draw(results, folder):
    return classification_figures(
        results, folder, heat={"attention": "What it looks at."},
        rows={"With and without the penalty.": ["attention", "penalty-0"]},
        sweeps=[Sweep("The penalty", "Coefficient", {0: "penalty-0", 1: "attention"}, ["accuracy"])], chosen={},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    better = build(root / "runs", CLASSIFIERS, texts=300)
    write_report(PAPER, better, root / "reports/quick/self_attentive", scale="quick", draw=draw)
    summarize(root / "reports", [])
    return root / "reports/quick/self_attentive"


def text(folder, name="README.md"):
    return (folder / name).read_text(encoding="utf-8")


def test_the_verdicts_follow_the_made_up_effects(folder):
    entries = {entry["id"]: entry for entry in json.loads(text(folder, "claims.json"))}
    assert [entries[f"L17-C{n}"]["verdict"] for n in (1, 3, 5)] == ["reproduced", "reproduced", "not tested"]


@pytest.mark.parametrize(
    "expected",
    [
        "## Paired tests",
        "| L17-C1 | `attention` – `max` | all | +",
        "Accuracy by set, %",
        "Redundancy of the rows of A",
        "![What it looks at. A word's weight is its mean over the rows of A.](figures/heat_attention.png)",
        "![With and without the penalty. The numbers are those of the rows of A.](figures/heat_rows_1.png)",
        "![The penalty. Mean over seeds;",
        "Share of the validation split classified wrongly",
    ],
)
def test_the_page_says(folder, expected):
    assert expected in text(folder)


def test_html_shows_coloured_words_in_the_place_of_their_pictures(folder):
    html = text(folder, "index.html")
    assert html.count('<figure class="heat">') == 2
    assert html.count("data:image/png;base64,") == len(list((folder / "figures").iterdir())) - 2
    assert not re.search(r'<(script|link)\b|src="(?!data:)|@import|url\(', html)


def test_every_table_row_has_as_many_cells_as_its_head(folder):
    for page in (text(folder), text(folder.parents[1])):
        lines = [re.sub(r"`[^`]*`|\\\|", "", line) for line in page.splitlines()]
        widths = [line.count("|") if line.startswith("|") else 0 for line in lines]
        assert all(a == b for a, b in pairwise(widths) if a and b)


def test_the_summary_has_scores_and_attention_apart(folder):
    heads = [line for line in text(folder.parents[1]).splitlines() if line.startswith("| Variant |")]
    assert heads[0] == "| Variant | Accuracy | Cross-entropy per text, nats |"
    assert heads[1].startswith("| Variant | Redundancy of the rows of A |")
    assert len(heads) == 2
