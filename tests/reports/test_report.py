"""The whole report of made-up runs, and the summary over reports."""

import csv
import json
import math
import re

import pytest

from shared.claims.results import load_results, read_curve
from shared.reports.curves import LearningCurves
from shared.reports.exhibits import draw_exhibits
from shared.reports.paper import Paper
from shared.reports.plans import Frozen
from shared.reports.report import write_report
from shared.reports.site import BEGIN, END, summarize, write_papers
from shared.tasks.translation.report import REPORT, AlignmentOffsets, Heatmaps, ScoresByLength
from tests.made_claims import REPLICATIONS, claim, compared, paper_folder
from tests.refused import assert_refused
from tests.reports.drawing import amiss
from tests.synthetic_runs import TRANSLATORS, build, skip, study

FIGURES = [ScoresByLength(), AlignmentOffsets(), Heatmaps("rnnsearch-50", "Attention weights."), LearningCurves()]
SEEDS = (1, 2, 3, 4, 5)
SHOWN = ("rnnsearch-50", "rnnencdec-50", "rnnencdec-30")
SEARCH = {
    "seeds": [101, 102],
    "groups": [{"key": "training.optimizer.rate", "values": [0.1, 0.3], "updates": 400, "variants": {"rnnsearch-50": {
        "trials": [{"value": 0.1, "loss": 1.5, "seeds": {"101": 1.5}}, {"value": 0.3, "loss": None}], "best": 0.1}}}],
}  # fmt: skip
QUICK = {
    "scale": "quick", "deviations": ["Adam in place of Adadelta."], "figures": FIGURES, "kind": REPORT,
    "evidence": dict.fromkeys(SHOWN, "generated") | {"counts": "measured"},
    "frozen": Frozen(
        {"commit": "3f2c9d1e5b7a00", "date": "2026-11-22T10:00:00+00:00", "claims": {"T99-C1": {}, "T99-C9": {}}},
        SEARCH, {"T99-C2": ("the settings of rnnencdec-30",)}, {("training.optimizer.rate", "rnnsearch-50"): 0.2},
        ["It has a value of its own."],
    ),
}  # fmt: skip
FLOOR = {"metric": "nll_per_token", "at_most": 0.1, "because": "the words are known",
         "exempt": {"rnnencdec-50": "it has one vector"}}  # fmt: skip


def loss(first, second, **more):
    return compared("less", "nll_per_token", first, second, **more)


CLAIMS = [
    claim(1, primary=loss("rnnsearch-50", "rnnencdec-50", paper=0.25), different_here="The words are made up.",
          supporting=[{"name": "BLEU"} | compared("greater", "bleu", "rnnsearch-50", "rnnencdec-50", relevant=1.0),
                      {"name": "reversed"} | loss("rnnencdec-50", "rnnsearch-50")]),
    claim(2, primary=loss("rnnsearch-50", "rnnencdec-30")),
    claim(3, primary=compared("less", "perplexity", "rnnencdec-50", "rnnsearch-50", relevant=1.05, scale="log")),
    claim(4, primary=loss("rnnsearch-50-long", "rnnencdec-50")),
    claim(5),
    claim(6, identities=[{"name": "growth", "variant": "counts", "metric": "growth", "value": 4.0},
                         {"name": "operations", "variant": "counts", "metric": "operations", "at_most": 100}]),
    claim(7, identities=[{"name": "growth", "variant": "counts", "metric": "growth", "value": 4.0}]),
]  # fmt: skip


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    return paper_folder(tmp_path_factory.mktemp("papers") / "bahdanau", *CLAIMS, floors={"generated": FLOOR})


@pytest.fixture(scope="module")
def root(tmp_path_factory, paper):
    root = tmp_path_factory.mktemp("project")
    shown = {name: TRANSLATORS[name] for name in SHOWN}
    runs = build(root / "runs/quick/bahdanau", shown, seeds=SEEDS, examples=120)
    study(runs, "counts", "generated", {"growth": 4.0, "operations": 100_663_296})
    skip(runs, "rnnsearch-50-long", "generated", "twice the budget of this scale")
    write_report(paper, runs, root / "reports/quick/bahdanau", **QUICK)
    return root


@pytest.fixture
def folder(root):
    return root / "reports/quick/bahdanau"


def entries(folder):
    return {entry["id"]: entry for entry in json.loads((folder / "claims.json").read_text())}


def page(folder):
    return (folder / "README.md").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def section(folder, number):
    return page(folder).split(f"### T99-C{number}: ")[1].split("\n##")[0]


def test_the_verdicts_follow_the_made_up_effects(folder):
    assert [entry["verdict"] for entry in entries(folder).values()] == [
        "reproduced", "inconclusive", "contradicted", "not tested", "not tested", "refuted", "verified"
    ]  # fmt: skip
    said = {(entry["scale"], entry["paper"]) for entry in entries(folder).values()}
    assert said == {("quick", "Bahdanau et al. 2015")}


def test_badge_effect_and_evidence_come_from_the_comparison_that_decides(folder):
    """The supporting row that contradicts shows in no row; identities are counted."""
    lines = page(folder).split("## Claim by")[0].splitlines()
    for name, entry in entries(folder).items():
        (row,) = (line for line in lines if f"| [{name}]" in line)
        badge, effect, evidence = (cell.strip() for cell in row.split("|")[3:6])
        assert badge.split(" ", 1)[1] == f"**{entry['verdict']}**" + (f": {entry['how']}" if entry["how"] else "")
        if (lead := entry["lead"]) is None:
            assert (effect, evidence) == ("–", "–")
            continue
        assert lead in [outcome for outcome in entry["comparisons"] if outcome["deciding"]]
        if lead["kind"] == "exact":
            held = [outcome["verdict"] == "verified" for outcome in entry["comparisons"]]
            assert (effect, evidence) == (f"{sum(held)} of {len(held)} hold", "identity")
        else:
            assert effect.startswith(f"{lead['effect']:+.3f} nats" if lead["unit"] else f"{lead['effect']:.3g}")
            assert "generated, 5 seeds" in evidence


def test_metrics_json_has_numbers_only(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["claims"] == {
        "reproduced": 1, "contradicted": 1, "inconclusive": 1, "verified": 1, "refuted": 1, "not tested": 2,
        "in part": 0, "mixed": 0,
    }  # fmt: skip
    numbers = [value for means in metrics["variants"].values() for value in means.values()]
    assert numbers
    assert all(isinstance(value, int | float) for value in numbers)


def test_the_curves_of_every_seed_are_written_in_order(root, folder):
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    keys = [(row["variant"], int(row["seed"]), int(row["update"]), row["metric"]) for row in rows]
    assert keys == sorted(keys)
    assert {key[:2] for key in keys} == {(name, seed) for name in SHOWN for seed in SEEDS}
    path = load_results(root / "runs/quick/bahdanau")["rnnsearch-50"].curve(2)
    curve = read_curve(path, metric="loss", split="valid")
    own = [row for row in rows if (row["variant"], row["seed"]) == ("rnnsearch-50", "2")]
    written = {int(row["update"]): row["value"] for row in own}
    assert written == {update: f"{value:.6g}" for update, value in curve.items()}


def test_a_claim_s_section_says_what_speaks_for_it_and_against_it(folder):
    for said in (
        "**In favour:** 5 seeds, 100 test examples, 1 of 2 supporting comparisons agree. **Against:** a limit that ",
        "**Learned:** rnnsearch-50: 5 of 5 learned, rnnencdec-50: 0 of 5 learned (exempt).",
        "10 of 10 runs that decide had ended by then.",
    ):
        assert said in section(folder, 1)
    assert "crosses where a model did not learn its task" in section(folder, 2)


def test_the_page_says(folder):
    for said in (
        "dvc repro replications/bahdanau/quick/dvc.yaml\n",
        "Of 1 experiment: **1 inconclusive**. Of 2 demonstrations: **1 reproduced, 1 contradicted**. "
        "Of 2 identities: **1 verified, 1 refuted**. Not tested: 2.",
        "| `rnnsearch-50` | 1.5 | diverged | 0.1, the smallest tried | 0.2 |",
        "* It has a value of its own.",
        "| `generated` | `rnnencdec-50` | 0 of 5 | it has one vector |",
        "| RNNsearch-50\\* | 28.45 |",
        "BLEU: `nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0`",
        "| total | 80,401,000 | 68,540,000 |",
        "Words that look most at their partner, share: 1. Largest weight of a row, mean: 0.711. Attention weights.",
    ):
        assert said in page(folder)


def test_the_page_works_offline(folder):
    write_papers(folder.parents[1], {"bahdanau": Paper.load(REPLICATIONS / "bahdanau" / "paper.yaml")})
    html = (folder.parents[1] / "bahdanau" / "index.html").read_text(encoding="utf-8")
    shown = {tuple(source.rsplit(".", 1)) for source in re.findall(r'src="\.\./quick/bahdanau/([^"]+)"', html)}
    assert {stem for stem, _ in shown} == {f"figures/{path.stem}" for path in (folder / "figures").glob("*.png")}
    assert {suffix for _, suffix in shown} == {"png", "svg"}  # heatmaps are pixels, curves are not
    assert not re.search(r"<script src|<link\b|@import|url\((?!#)", html)
    assert amiss(folder) == []


def test_a_second_run_writes_the_same_bytes(root, paper, folder):
    before = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    (folder / "figures" / "stale.png").write_bytes(b"left over")
    write_report(paper, root / "runs/quick/bahdanau", folder, **QUICK)
    assert {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_one_seed_without_records_still_makes_a_report(tmp_path):
    paper = paper_folder(tmp_path / "a", claim(1, primary=loss("rnnsearch-50", "rnnencdec-50")))
    two = {name: TRANSLATORS[name] for name in SHOWN[:2]}
    runs = build(tmp_path / "runs", two, seeds=(1,), examples=40)
    (runs / "rnnsearch-50/train/seed1/run.json").unlink()
    (runs / "rnnsearch-50/train/seed1/curve.csv").unlink()
    (decision,) = write_report(paper, runs, tmp_path / "out", scale="bench")
    assert decision.verdict == "inconclusive"
    text = page(tmp_path / "out")
    assert "1 seed, and at least 5 decide" in text
    assert "None are recorded for the bench scale." in text
    assert "No plan was frozen before these runs." in text
    assert "No floor is stated" in text
    assert (tmp_path / "out/figures/seeds_T99-C1.png").exists()


def test_two_figures_of_one_name_are_refused(root, tmp_path):
    results = load_results(root / "runs/quick/bahdanau")
    twice = [Heatmaps("rnnsearch-50", said) for said in ("One.", "The same.")]
    assert_refused(r"two figures of the report are drawn to", draw_exhibits, twice, results, tmp_path)


def readme(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Top\n\n{BEGIN}\nold\n{END}\n\nrest\n", encoding="utf-8")
    return path


def test_the_summary_and_the_readmes(root):
    top, own = readme(root / "README.md"), readme(root / "replications/bahdanau/README.md")
    other = readme(root / "replications/luong/README.md")
    readme(root / "reports/figures/stale.png")
    summarize(root / "reports", [top, own, other])
    assert amiss(root / "reports") == []
    page = (root / "reports/README.md").read_text()
    assert '* [✔ Statement 1.](bahdanau/README.md#T99-C1 "T99-C1, reproduced")' in page
    row = "| [Bahdanau et al. 2015](reports/bahdanau/README.md) | 1 | 0 | 0 | 1 | 1 | 1 | 1 | 2 |"
    assert row in top.read_text()
    assert ": [Statement 3](reports/bahdanau/README.md#T99-C3): ✘ **contradicted**" in top.read_text()
    assert top.read_text().count("#T99-C") == 2
    assert own.read_text().count("| [T99-C") == 7
    assert "](../../reports/bahdanau/README.md)" in own.read_text()
    assert "No report has been made yet." in other.read_text()
    assert top.read_text().startswith("# Top\n")
    assert top.read_text().endswith("\n\nrest\n")
    assert "\nold\n" not in top.read_text()
    before = top.read_text()
    summarize(root / "reports", [top])
    assert top.read_text() == before


def test_a_readme_without_markers_is_refused_unchanged(tmp_path):
    (tmp_path / "README.md").write_text(f"{END}\n{BEGIN}\n")
    assert_refused("once each, in this order", summarize, tmp_path / "reports", [tmp_path / "README.md"])
    assert (tmp_path / "README.md").read_text() == f"{END}\n{BEGIN}\n"


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [x for each in value for x in numbers(each)] if isinstance(value, list) else [value]


def test_numbers_do_not_depend_on_the_last_bits(folder):
    """Sums in another order, as other processors make them, differ there."""
    for name in ("claims.json", "metrics.json"):
        floats = [x for x in numbers(json.loads((folder / name).read_text())) if isinstance(x, float)]
        assert floats
        assert [x for x in floats if x != float(f"{x:.10g}")] == []


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_a_diverged_training_leaves_is_null(number, tmp_path, paper):
    runs = build(tmp_path / "runs", {name: TRANSLATORS[name] for name in SHOWN}, seeds=SEEDS, examples=20)
    study(runs, "counts", "generated", {"growth": 4.0, "operations": 1})
    scores = json.loads((runs / SHOWN[0] / "metrics.json").read_text())
    for part in (scores["mean"], scores["seeds"]["2"]):
        part |= {"nll_per_token": number, "speed": number}
    (runs / SHOWN[0] / "metrics.json").write_text(json.dumps(scores))
    write_report(paper, runs, tmp_path / "quick/bahdanau", scale="quick", kind=REPORT)
    written = json.loads((tmp_path / "quick/bahdanau/metrics.json").read_text())
    assert written["variants"][SHOWN[0]]["speed"] is None
