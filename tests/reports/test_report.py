"""The whole report of made-up runs, and the summary over reports."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.reports.exhibits import draw_all
from shared.reports.learning_curves import LearningCurves
from shared.reports.report import write_report
from shared.reports.summary import BEGIN, END, summarize
from shared.tasks.translation.figures import Heatmaps, SentenceScores
from shared.tasks.translation.report import REPORT
from tests.synthetic_runs import TRANSLATORS, Variant, build, skip

PAPER = Path(__file__).parents[2] / "replications" / "bahdanau"
FIGURES = [SentenceScores(), Heatmaps("rnnsearch-50", "Attention weights."), LearningCurves()]
QUICK = {"scale": "quick", "deviations": ["Adam in place of Adadelta."], "figures": FIGURES, "kind": REPORT}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    losing = TRANSLATORS | {
        "corpus-rnnsearch": Variant("corpus", 0.4),
        "corpus-rnnencdec": Variant("corpus", 0.7),
    }
    del losing["rnnsearch-50-long"]
    runs = build(root / "runs/quick/bahdanau", losing, examples=120)
    skip(runs, "rnnsearch-50-long", "generated", "twice the budget of this scale")
    write_report(PAPER, runs, root / "reports/quick/bahdanau", **QUICK)
    return root


@pytest.fixture
def folder(root):
    return root / "reports/quick/bahdanau"


def verdicts(folder):
    return {entry["id"]: entry["verdict"] for entry in json.loads((folder / "claims.json").read_text())}


def test_the_verdicts_follow_the_made_up_effects(folder):
    assert verdicts(folder) == {
        "B15-C1": "contradicted", "B15-C2": "reproduced", "B15-C3": "reproduced", "B15-C4": "not tested",
        "B15-C5": "not tested", "B15-C6": "reproduced",
    }  # fmt: skip


def test_claims_json_is_what_is_promised(folder):
    for entry in json.loads((folder / "claims.json").read_text()):
        assert {
            "id",
            "verdict",
            "effect",
            "interval",
            "seeds",
            "n",
            "metric",
            "variants",
            "scale",
        } <= entry.keys()
        assert entry["scale"] == "quick"
        assert entry["paper"] == "Bahdanau et al. 2015"


def test_metrics_json_has_numbers_only(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["claims"] == {"reproduced": 3, "contradicted": 1, "inconclusive": 0, "not tested": 2}
    numbers = [value for means in metrics["variants"].values() for value in means.values()]
    assert numbers
    assert all(isinstance(value, int | float) for value in numbers)


@pytest.mark.parametrize(
    "expected",
    [
        "dvc repro report@bahdanau",
        "Of 6 claims: **3 reproduced, 1 contradicted, 2 not tested**.",
        "✘ **contradicted**",
        "rnnsearch-50-long: twice the budget of this scale",
        "| RNNsearch-50 | 26.75 |",
        "| RNNsearch-50\\* | 28.45 |",
        "Perplexity per BPE piece",
        "BLEU: `nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0`",
        "| total | 80,401,000 | 68,540,000 |",
        "| Seeds | 1, 2, 3 |",
        "| torch | 2.13.0 |",
        "| Commit | 3f2c9d1e5b7a |",
        "Adam in place of Adadelta",
        "![Attention weights.](figures/alignments_rnnsearch-50.png)",
    ],
)
def test_the_page_says(folder, expected):
    assert expected in (folder / "README.md").read_text(encoding="utf-8")


def test_deltas_stand_beside_the_papers_numbers(folder):
    ours = json.loads((folder / "metrics.json").read_text())["variants"]["rnnsearch-50"]["bleu"]
    row = next(line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| RNNsearch-50 |"))
    assert f"{ours:.2f}\N{NO-BREAK SPACE}(+{ours - 26.75:.2f})" in row


def test_every_linked_figure_is_there_and_every_figure_is_linked(folder):
    linked = set(re.findall(r"\]\((figures/[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert linked == {f"figures/{path.name}" for path in (folder / "figures").iterdir()}
    assert len(linked) == 6


def test_the_page_works_offline(folder):
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == 6
    assert not re.search(r'<(script|link)\b|src="(?!data:)|@import|url\(', html)


def test_every_table_row_has_as_many_cells_as_its_head(folder):
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    outside_code = [re.sub(r"`[^`]*`|\\\|", "", line) for line in lines]
    widths = [line.count("|") if line.startswith("|") else 0 for line in outside_code]
    assert all(a == b for a, b in pairwise(widths) if a and b)
    assert max(widths) > 8


def test_a_second_run_writes_the_same_bytes(root, folder):
    before = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    (folder / "figures" / "stale.png").write_bytes(b"left over")
    write_report(PAPER, root / "runs/quick/bahdanau", folder, **QUICK)
    assert {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_one_seed_without_records_still_makes_a_report(tmp_path):
    runs = build(tmp_path / "runs", {"rnnsearch-50": TRANSLATORS["rnnsearch-50"]}, seeds=(1,), examples=40)
    (runs / "rnnsearch-50/train/seed1/run.json").unlink()
    (runs / "rnnsearch-50/train/seed1/curve.csv").unlink()
    decisions = write_report(PAPER, runs, tmp_path / "out", scale="bench")
    assert {decision.verdict for decision in decisions} == {"not tested", decisions[-1].verdict}
    text = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "1 (spread unknown)" in text
    assert "None are recorded for the bench scale." in text


def test_two_figures_of_one_name_are_refused(root, tmp_path):
    results = load_results(root / "runs/quick/bahdanau")
    twice = [Heatmaps("rnnsearch-50", "One."), Heatmaps("rnnsearch-50", "The same.")]
    with pytest.raises(ReplicationError, match=r"two figures of the report are drawn to alignments_rnnsearch-50\.png"):
        draw_all(twice, results, tmp_path)


def readme(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Top\n\n{BEGIN}\nold\n{END}\n\nrest\n", encoding="utf-8")
    return path


def test_the_summary_and_the_readmes(root):
    top, own = readme(root / "README.md"), readme(root / "replications/bahdanau/README.md")
    other = readme(root / "replications/luong/README.md")
    summarize(root / "reports", [top, own, other])
    assert "[Bahdanau et al. 2015](quick/bahdanau/README.md)" in (root / "reports/README.md").read_text()
    assert (root / "reports/index.html").read_text().count("B15-C") == 6
    assert "](reports/quick/bahdanau/README.md) | quick |" in top.read_text()
    assert "B15-C" not in top.read_text()
    assert own.read_text().count("B15-C") == 6
    assert "](../../reports/quick/bahdanau/README.md)" in own.read_text()
    assert "No report has been made yet." in other.read_text()
    assert top.read_text().startswith("# Top\n")
    assert top.read_text().endswith("\n\nrest\n")
    assert "old" not in top.read_text()
    before = top.read_text()
    summarize(root / "reports", [top])
    assert top.read_text() == before


def test_smoke_verdicts_stay_out_of_the_readmes(root, tmp_path):
    source = root / "reports/quick/bahdanau"
    smoke = tmp_path / "reports/smoke/bahdanau"
    smoke.mkdir(parents=True)
    for name in ("claims.json", "metrics.json"):
        (smoke / name).write_bytes((source / name).read_bytes())
    top = readme(tmp_path / "README.md")
    summarize(tmp_path / "reports", [top])
    assert "No report has been made yet." in top.read_text()
    assert "smoke" in (tmp_path / "reports/README.md").read_text()


def test_a_readme_without_markers_is_refused_unchanged(tmp_path):
    (tmp_path / "README.md").write_text(f"{END}\n{BEGIN}\n")
    with pytest.raises(ReplicationError, match="once each, in this order"):
        summarize(tmp_path / "reports", [tmp_path / "README.md"])
    assert (tmp_path / "README.md").read_text() == f"{END}\n{BEGIN}\n"


def test_half_a_report_is_refused(tmp_path):
    (tmp_path / "quick/bahdanau").mkdir(parents=True)
    (tmp_path / "quick/bahdanau/claims.json").write_text("[]")
    with pytest.raises(ReplicationError, match="no whole report"):
        summarize(tmp_path, [])
