"""What joins reports: the page of a paper with two scales, and the table of models of papers of the same data."""

import csv
import json
import re
import shutil
from math import log
from pathlib import Path

import pytest

from shared.claims.comparisons import Floor
from shared.claims.results import load_results
from shared.reports import site
from shared.reports.document import Figure, Table, parts, plain_text
from shared.reports.joined import Replicated, decided_by
from shared.reports.page import DATA, read_part, write_page
from shared.reports.paper import Paper
from shared.reports.report import write_report
from shared.reports.runs import run_entries
from shared.reports.site import FIELDS, across_papers, beside_the_papers, summarize
from shared.reports.verdicts import Report
from tests.made_claims import claim, entry, paper_folder
from tests.refused import assert_refused
from tests.reports.test_report import loss, readme
from tests.synthetic_runs import TRANSLATORS, Variant, build, change_json

SHOWN = ("rnnsearch-50", "rnnencdec-50")
CLAIMS = [
    claim(1, primary=loss("rnnsearch-50", "rnnencdec-50"), in_short="attention helps"),
    claim(2, primary=loss("rnnencdec-50", "rnnsearch-50"), in_short="attention hurts"),
    claim(3, in_short="nobody knows"),
    claim(4, primary=loss("rnnsearch-50", "rnnencdec-50"), in_short="quick alone tests it"),
]
BENCH = {"T99-C1": "inconclusive", "T99-C2": "reproduced", "T99-C3": "not tested", "T99-C4": "not tested"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A paper with a report at the quick scale, and one at bench that says :data:`BENCH`; the site over them."""
    root = tmp_path_factory.mktemp("project")
    paper = paper_folder(root / "replications" / "bahdanau", *CLAIMS)
    runs = build(root / "runs", {name: TRANSLATORS[name] for name in SHOWN}, seeds=(1, 2, 3, 4, 5), examples=60)
    quick, bench = (root / "reports" / scale / "bahdanau" for scale in ("quick", "bench"))
    for scale, out in (("quick", quick), ("bench", bench)):
        write_report(paper, runs, out, scale=scale, evidence=dict.fromkeys(SHOWN, "generated"))
    entries = json.loads((bench / "claims.json").read_text())
    for each in entries:
        each |= {"verdict": BENCH[each["id"]], "evidence": "standard data", "how": ""}
        each |= {} if each["verdict"] != "not tested" else {"lead": None, "reason": "no run could"}
    (bench / "claims.json").write_text(json.dumps(entries))
    top, own = readme(root / "README.md"), readme(root / "replications/bahdanau/README.md")
    summarize(root / "reports", [top, own], {"bahdanau": Paper.load(paper / "paper.yaml")})
    return root


@pytest.fixture
def page(root):
    return (root / "reports/bahdanau/README.md").read_text().replace("\N{NO-BREAK SPACE}", " ")


def card(page, claim):
    return page.split(f'<a id="{claim}"></a>')[1].split("<a id=")[0].split("\n## ")[0]


def test_the_total_comes_first_then_what_failed_and_what_is_open_in_words(page):
    first = page.split("## What did not hold")[0]
    assert "**Of 4 claims 2 hold here, on 1 the evidence is mixed, 1 was not tested.**" in first
    assert "* [Nobody knows](#T99-C3): – **not tested**; " in page


def test_a_card_has_the_evidence_of_every_scale_that_has_any_the_better_first(page):
    both, alone = card(page, "T99-C2"), card(page, "T99-C4")
    assert both.index("**At bench scale** ✔ **reproduced**") < both.index("<summary>At quick scale: ✘ contradicted, ")
    assert both.count("**In the paper**") == 1
    assert both.count("How it was decided") == 1
    assert "bench" not in alone
    assert alone.count("How it was decided") == 1


def test_the_table_and_a_sentence_say_where_scales_disagree(page):
    said = "on T99-C2: contradicted at quick scale, reproduced at bench scale. Neither verdict is dropped"
    assert f"* **The scales disagree** {said}; the better evidence is that of bench scale." in page
    (row,) = re.findall(r"\| \[T99-C2\]\(#T99-C2\) \| Attention hurts\. \| (.*) \|\n", page)
    quick, bench = row.split(" | ")
    assert quick.startswith("✘ **contradicted**")
    assert bench.startswith("✔ **reproduced**")


def test_what_is_stored_is_what_was_written(root, tmp_path):
    part = read_part(root / "reports/quick/bahdanau")
    assert part.cards.keys() == BENCH.keys()
    assert part.cards["T99-C1"].evidence[1].path == root / "reports/quick/bahdanau/figures/seeds_T99-C1.png"
    (tmp_path / DATA).write_text("{")
    assert_refused(r"page.json cannot be read .* run its report stage again", read_part, tmp_path)


def test_the_summary_counts_the_better_evidence_once_and_leaves_out_the_smoke_scale(root):
    shutil.copytree(root / "reports/quick", root / "reports/smoke")
    top, own = readme(root / "README.md"), readme(root / "replications/bahdanau/README.md")
    summarize(root / "reports", [top, own])
    shutil.rmtree(root / "reports/smoke")
    assert "| [Bahdanau et al. 2015](reports/bahdanau/README.md) | 2 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in top.read_text()
    for text in (own.read_text(), (root / "reports/README.md").read_text()):
        rows = {name: next(line for line in text.splitlines() if f"| [{name}](" in line) for name in BENCH}
        assert rows["T99-C1"].endswith("| quick; bench, on standard data: inconclusive |")
        assert rows["T99-C2"].endswith("| bench; quick disagrees: contradicted |")
    assert "(../../reports/bahdanau/README.md)" in own.read_text()


@pytest.mark.parametrize(
    ("confirmed", "said"),
    [(["confirmed", "not confirmed", "one run", ""], " confirm 1 of 2 verdicts."), (["one run", "", "", ""], "")],
)  # fmt: skip
def test_the_summary_counts_what_further_seeds_have_confirmed(confirmed, said):
    of = {"lead": {"kind": "less"}, "evidence": "generated", "verdict": "reproduced"}
    assert decided_by([of | {"confirmed": each} for each in confirmed]).partition(".")[2].endswith(said)
    assert ("Further" in decided_by([of | {"confirmed": each} for each in confirmed])) is bool(said)


@pytest.mark.parametrize(("quick", "bench", "paper_scale", "said"), [
    ("contradicted", "reproduced", "inconclusive", "bench; quick disagrees: contradicted"),
    ("reproduced", "contradicted", "contradicted", "paper_scale; quick disagrees: reproduced"),
    ("reproduced", "inconclusive", "reproduced", "paper_scale"),
])  # fmt: skip
def test_of_three_scales_only_those_that_disagree_are_said_to(tmp_path, quick, bench, paper_scale, said):
    reports = []
    for scale, verdict in {"quick": quick, "bench": bench, "paper_scale": paper_scale}.items():
        folder = tmp_path / scale / "paper"
        folder.mkdir(parents=True)
        (folder / "claims.json").write_text(json.dumps([entry("T1-C1", verdict, scale)]))
        reports.append(Report(folder))
    found = Replicated(reports)
    assert found.row(found.claims[0], tmp_path)[-1] == said


def test_the_claims_are_data_too_with_described_fields(root):
    folder = root / "reports"
    data = json.loads((folder / "claims.json").read_text())
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert data["fields"] == FIELDS
    assert [row["claim"] for row in rows] == [row["claim"] for row in data["claims"]] == [*BENCH]
    assert [row["verdict"] for row in rows] == ["reproduced", "mixed", "not tested", "reproduced"]
    assert rows[1]["page"] == "bahdanau/README.md#T99-C2"
    entry = r"@misc\{attention_replicated,\n(  \w+ = \{.+\},\n)+  year = \{\d+\}\n\}\n"  # BibTeX refuses any other sign
    assert re.fullmatch(entry, (folder / "attention_replicated.bib").read_text())


# ---------------------------------------------------------------- in a browser


def test_an_old_address_leads_to_the_card(opened, root):
    page = opened(root / "reports", "bench/bahdanau/index.html", "#T99-C4")
    page.wait_for_url("**/reports/bahdanau/index.html#T99-C4")
    assert page.locator("#T99-C4 .badge").first.inner_text().endswith("reproduced")


def test_a_tile_says_its_claim_in_words_and_is_a_link(opened, root):
    page = opened(root / "reports", "index.html")
    tile = page.get_by_role("link", name="attention helps : reproduced")
    assert tile.inner_text().splitlines()[0] == "✔ attention helps"
    assert page.get_by_role("heading", level=1).count() == 1


def test_claims_can_be_searched(opened, root):
    page = opened(root / "reports", "index.html")
    page.locator("input[type=search]:visible").first.fill("HURTS attention")  # another may be in a folded section
    assert page.locator("[data-filters]:visible").first.locator("tbody tr:not([hidden])").count() == 1
    assert page.locator(".filters:visible output").first.inner_text() == "1 of 4"


@pytest.mark.parametrize("media", ["screen", "print"])
def test_folded_sections_open_from_the_contents_and_paper_leaves_them_out(opened, root, media):
    page = opened(root / "reports", "bahdanau/index.html", viewport={"width": 1440, "height": 900})
    page.emulate_media(media=media)
    section = page.locator("#cost-of-training")
    assert section.is_visible() == (media == "screen")
    if media == "screen":
        page.locator(".contents a[href='#cost-of-training']").click()
        assert section.locator("table").first.is_visible()
    columns = page.locator("#T99-C2 .columns").evaluate("each => getComputedStyle(each).gridTemplateColumns.split(' ')")
    assert len(columns) == 2, "pictures stand beside words on paper, too"


NUMBERS = ["−1.25×10⁻⁵ nats", "+2.0×10⁹", "–", "< 0.001", "12,500 [12,000, 13,000]", "−3", "0.5 ± 0.1"]


def test_a_table_is_sorted_by_its_numbers_signs_and_powers_of_ten(opened, tmp_path):
    write_page([Table(("Name", "Effect"), [["a", number] for number in NUMBERS], "ll")], tmp_path, title="t")
    page = opened(tmp_path, "index.html")
    read = "table => Array.from(table.tBodies[0].rows, row => row.cells[1].textContent)"
    falling = ["+2.0×10⁹", "12,500 [12,000, 13,000]", "0.5 ± 0.1", "< 0.001", "−1.25×10⁻⁵ nats", "−3"]
    page.get_by_role("button", name="Effect").click()
    assert page.locator("table").evaluate(read) == [*falling, "–"]
    page.get_by_role("button", name="Effect").click()
    assert page.locator("table").evaluate(read) == [*reversed(falling), "–"]


VARIANTS = {"attentive": Variant("generated", 0.97, operations=2e15, parameters=1_000),
            "plain": Variant("generated", 0.80, operations=1e15, parameters=2_000)}  # fmt: skip

FLOOR = Floor(metric="bleu", at_least=75.0, because="it is a test")


@pytest.fixture
def entries(tmp_path):
    build(tmp_path / "runs", VARIANTS, examples=60)
    for path in sorted((tmp_path / "runs").glob("*/train/*/run.json")):
        corpus = {"dataset": "made-up", "tokenizer": {"size": 10}}
        more = {"parameters": {"corpus": corpus}, "fingerprint": path.parts[-4], "processor_seconds": 90.0}
        change_json(path, lambda record, more=more: record.update(more))
    return run_entries(load_results(tmp_path / "runs"), {"generated": FLOOR})


def report(folder: Path, paper: str, entries, scale="bench"):
    own = folder / scale / paper
    own.mkdir(parents=True)
    (own / "runs.json").write_text(json.dumps(entries))
    (own / "claims.json").write_text(json.dumps([{"id": "T-C1", "paper": f"The {paper}"}]))
    return Report(own)


def test_an_entry_has_scores_with_intervals_and_costs(entries):
    attentive = entries[0]
    assert attentive["variant"] == "attentive"
    assert (attentive["seeds"], attentive["parameters"], attentive["processor_seconds"]) == (3, 1_000, 90.0)
    assert attentive["operations"] == 2e15
    value, low, high = attentive["scores"]["bleu"]
    assert low < value < high
    assert entries[0]["data"] == entries[1]["data"]
    assert entries[0]["weights"] != entries[1]["weights"]


def test_a_score_that_is_no_number_in_some_seed_is_left_out(entries, tmp_path):
    shutil.rmtree(tmp_path / "runs" / "plain" / "evaluation")  # else it is computed from the examples
    metrics = tmp_path / "runs" / "plain" / "metrics.json"
    change_json(metrics, lambda content: content["seeds"]["1"].update(perplexity=float("nan")))
    found = run_entries(load_results(tmp_path / "runs"), {})
    assert [entry["scores"].keys() - {"perplexity"} == entry["scores"].keys() for entry in found] == [False, True]
    assert across_papers([report(tmp_path, "first", found[1:]), report(tmp_path, "second", found)], tmp_path)


def test_models_of_the_same_data_stand_in_one_table_the_best_first(entries, tmp_path):
    first = report(tmp_path, "first", entries[1:])
    second = report(tmp_path, "second", entries)  # has the first one's model on loan
    said, table = across_papers([first, second], tmp_path)[0].blocks
    assert plain_text(said.text).startswith("made-up, bench scale.")
    assert isinstance(table, Table)
    first_cells = [plain_text(row[0]) for row in table.rows]
    assert first_cells == ["attentive, The second attentive", "plain, The first plain below its floor"]
    assert ("link", "bench/second/README.md", "The second") in parts(table.rows[0][0])
    columns = dict(zip(table.columns, table.rows[0], strict=True))
    assert parts(columns["BLEU ↑"])[1][0] == "strong"
    assert columns["Core minutes"] == "1.5"
    assert columns["BLEU / 10¹⁵"] == f"{entries[0]['scores']['bleu'][0] / 2:.0f}"
    assert all(len(row) == len(table.columns) == len(table.letters) for row in table.rows)


def test_models_below_their_floor_are_marked(entries, tmp_path):
    assert [entry.pop("below") for entry in entries] == [0, 3]
    older = [report(tmp_path, "an", entries[:1]), report(tmp_path, "older", entries[1:])]
    assert "below its floor" not in str(across_papers(older, tmp_path))
    entries[1]["below"] = 3
    reports = [report(tmp_path, "first", entries[:1]), report(tmp_path, "second", entries[1:])]
    said, table = across_papers(reports, tmp_path)[0].blocks
    assert plain_text(said.text).endswith("they have not learned enough to be compared.")
    assert ["below its floor" in plain_text(row[0]) for row in table.rows] == [False, True]


def test_other_data_and_other_scales_have_no_common_table(entries, tmp_path):
    other = [entry | {"data": "elsewhere", "weights": "other"} for entry in entries]
    assert across_papers([report(tmp_path, "first", entries), report(tmp_path, "second", other)], tmp_path) == []
    alone = [report(tmp_path / "b", "first", entries[:1]), report(tmp_path / "b", "second", entries[1:], "quick")]
    assert across_papers(alone, tmp_path) == []


def replicated(folder, *claims):
    own = folder / "quick" / "p"
    own.mkdir(parents=True, exist_ok=True)
    (own / "claims.json").write_text(json.dumps(claims))
    return [Replicated([Report(own)])]


def test_effects_are_drawn_as_shares_of_the_paper_s_own(tmp_path, monkeypatch):
    drawn, draw = [], site.draw_forest
    monkeypatch.setattr(site, "draw_forest", lambda effects, *more: (drawn.extend(effects), draw(effects, *more)))
    plain = entry("T-C1", paper=2.0, effect=1.0, interval=[0.5, 1.5])
    ratio = entry("T-C3", paper=1.2, scale="log", effect=1.1, interval=None, relevant=1.05)
    claims = [plain, entry("T-C2"), ratio]
    blocks = beside_the_papers(replicated(tmp_path, *claims), tmp_path)[0].blocks
    (figure,) = (block for block in blocks if isinstance(block, Figure))
    assert figure.path == tmp_path / "figures" / "beside.png"
    assert figure.path.is_file()
    assert figure.seen == "s: 0.5 of the paper's effect; s: 0.52 of the paper's effect"
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert [plain_text(row[0]) for row in table.rows] == ["s", "s"]
    assert (drawn[0].value, drawn[0].interval) == (0.5, (0.25, 0.75))
    assert (drawn[1].value, drawn[1].interval) == (pytest.approx(log(1.1) / log(1.2)), ())
