"""One table of the models of several papers that have seen the same data; effects beside the papers' own."""

import json
import shutil
from math import log
from pathlib import Path

import pytest

from shared.claims.comparisons import Floor
from shared.claims.results import load_results
from shared.reports import site
from shared.reports.document import Figure, Table, parts, plain_text
from shared.reports.runs import run_entries
from shared.reports.site import Replicated, across_papers, beside_the_papers
from shared.reports.verdicts import Report
from tests.made_claims import entry
from tests.synthetic_runs import Variant, build, change_json

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
