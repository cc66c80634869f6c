"""Verdicts of several scales side by side: in a report, in the READMEs and on the page of all papers."""

import json

import pytest

from shared.errors import ReplicationError
from shared.reports.report import write_report
from shared.reports.site import Replicated, summarize
from shared.reports.verdicts import Report, other_scales
from tests.made_claims import claim, paper_folder
from tests.reports.test_report import loss, readme
from tests.synthetic_runs import TRANSLATORS, build

SHOWN = ("rnnsearch-50", "rnnencdec-50")
CLAIMS = [
    claim(1, primary=loss("rnnsearch-50", "rnnencdec-50")),
    claim(2, primary=loss("rnnencdec-50", "rnnsearch-50")),
    claim(3),
]
BENCH = {"T99-C1": "inconclusive", "T99-C2": "reproduced", "T99-C3": "reproduced"}
OTHER = "9e8d7c6b5a493827160"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A paper with a report at the quick scale, and one at bench that says :data:`BENCH`."""
    root = tmp_path_factory.mktemp("project")
    paper = paper_folder(root / "replications" / "bahdanau", *CLAIMS)
    runs = build(root / "runs", {name: TRANSLATORS[name] for name in SHOWN}, seeds=(1, 2, 3, 4, 5), examples=60)

    def report(scale):
        out = root / "reports" / scale / "bahdanau"
        others = other_scales(root / "reports", "bahdanau", scale)
        write_report(paper, runs, out, scale=scale, evidence=dict.fromkeys(SHOWN, "generated"), others=others)

    report("quick")
    bench = root / "reports" / "bench" / "bahdanau"
    bench.mkdir(parents=True)
    entries = json.loads((root / "reports/quick/bahdanau/claims.json").read_text())
    for entry in entries:
        entry |= {"scale": "bench", "verdict": BENCH[entry["id"]], "evidence": "standard data", "commits": [OTHER]}
        entry["how"] = ""
    (bench / "claims.json").write_text(json.dumps(entries))
    (bench / "metrics.json").write_text('{"claims": {}, "variants": {}}')
    before = (root / "reports/quick/bahdanau/claims.json").read_bytes()
    report("quick")
    assert (root / "reports/quick/bahdanau/claims.json").read_bytes() == before, "verdicts depend on other scales"
    return root


@pytest.fixture
def page(root):
    return (root / "reports/quick/bahdanau/README.md").read_text().replace("\N{NO-BREAK SPACE}", " ")


def row(page, claim):
    return next(line for line in page.splitlines() if f"| [{claim}](" in line)


def test_the_table_has_this_scale_in_full_and_the_other_in_one_column(page):
    assert "| Claim | What was tested | Verdict | Effect | Evidence | At bench scale |" in page
    cells = [cell.strip() for cell in row(page, "T99-C1").split("|")]
    assert cells[3] == "✔ **reproduced**"
    assert cells[5].startswith("generated, 5 seeds")
    assert cells[6].startswith("bench: ? **inconclusive**; +")
    assert "standard data, 5 seeds" in cells[6]
    assert row(page, "T99-C3").endswith("| – | – | bench: ✔ **reproduced** |")


def test_the_page_says_where_the_others_are_from_and_which_are_better(page):
    assert (
        f"* At [bench scale](../../bench/bahdanau/README.md): from runs of commit `{OTHER[:12]}`; its verdicts" in page
    )
    assert "is that of quick scale for T99-C1; bench scale for T99-C2, T99-C3." in page


def test_a_disagreement_is_said_plainly(page):
    said = "on T99-C2: contradicted at quick scale, reproduced at bench scale. Neither verdict is dropped"
    assert f"* **The scales disagree** {said}; the better evidence is that of bench scale." in page
    assert page.count("The scales disagree") == 1


def test_only_scales_that_decide_stand_beside_each_other(root):
    smoke = root / "reports" / "smoke" / "bahdanau"
    smoke.mkdir(parents=True, exist_ok=True)
    for name in ("claims.json", "metrics.json"):
        (smoke / name).write_bytes((root / "reports/bench/bahdanau" / name).read_bytes())
    assert [other.scale for other in other_scales(root / "reports", "bahdanau", "quick")] == ["bench"]
    assert [other.scale for other in other_scales(root / "reports", "bahdanau", "paper_scale")] == ["quick", "bench"]
    assert other_scales(root / "reports", "bahdanau", "smoke") == []
    assert other_scales(root / "reports", "luong", "quick") == []


def test_a_damaged_report_of_another_scale_is_named(tmp_path):
    (tmp_path / "bench/bahdanau").mkdir(parents=True)
    (tmp_path / "bench/bahdanau/claims.json").write_text("[{")
    with pytest.raises(ReplicationError, match="bench/bahdanau is no whole report"):
        _ = other_scales(tmp_path, "bahdanau", "quick")[0].claims
    with pytest.raises(ReplicationError, match="bench/bahdanau is no whole report"):
        summarize(tmp_path, [])


def test_the_summary_counts_the_better_evidence_once(root):
    top, own = readme(root / "README.md"), readme(root / "replications/bahdanau/README.md")
    summarize(root / "reports", [top, own])
    links = "[quick](reports/quick/bahdanau/README.md), [bench](reports/bench/bahdanau/README.md)"
    assert f"| Bahdanau et al. 2015 | {links} | 3 | 0 | 0 | 0 | 0 | 0 |" in top.read_text()
    assert "the better evidence on each claim is counted" in top.read_text()
    for text in (own.read_text(), (root / "reports/README.md").read_text()):
        assert text.count("[T99-C") == 3
        assert row(text, "T99-C1").endswith("| quick; bench, on standard data: inconclusive |")
        assert row(text, "T99-C2").endswith("| bench; quick disagrees: contradicted |")
        assert row(text, "T99-C3").endswith("| bench |")
    assert "[bench](../../reports/bench/bahdanau/README.md)" in own.read_text()


@pytest.mark.parametrize(
    ("quick", "bench", "paper_scale", "said"),
    [
        ("contradicted", "reproduced", "inconclusive", "bench; quick disagrees: contradicted"),
        ("reproduced", "contradicted", "contradicted", "paper_scale; quick disagrees: reproduced"),
        ("reproduced", "inconclusive", "reproduced", "paper_scale"),
    ],
)
def test_of_three_scales_only_those_that_disagree_are_said_to(tmp_path, quick, bench, paper_scale, said):
    reports = []
    for scale, verdict in {"quick": quick, "bench": bench, "paper_scale": paper_scale}.items():
        entry = {"id": "T1-C1", "evidence": "generated", "verdict": verdict, "scale": scale}
        entry |= {"how": "", "lead": None, "agreeing": 0, "supporting": 0, "statement": "s"}
        folder = tmp_path / scale / "paper"
        folder.mkdir(parents=True)
        (folder / "claims.json").write_text(json.dumps([entry]))
        reports.append(Report(folder))
    found = Replicated(reports)
    assert found.row(found.claims[0], tmp_path)[-1] == said
