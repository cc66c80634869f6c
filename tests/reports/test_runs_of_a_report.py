"""What a report says of its runs, their data, whether they have learned, and of the plans and settings before."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from shared.claims.comparisons import Floor
from shared.claims.results import load_results
from shared.data.cards import load_card
from shared.reports.document import Block, Table, parts, plain_text
from shared.reports.exhibits import by_task
from shared.reports.page import render
from shared.reports.paper import Paper
from shared.reports.plans import Frozen, deciding_records, end_of, since_frozen, standing
from shared.reports.report import describe_data
from shared.reports.runs import beside_the_paper, cost, learned_blocks, our_results, provenance
from shared.tasks.translation.report import REPORT, ScoresByLength
from tests.reports.drawing import draw_all
from tests.synthetic_runs import Variant, build, change_json, rewrite_examples, write_metrics

VARIANTS = {"attentive": Variant("generated", 0.95, 0.01, attention=0.9), "plain": Variant("generated", 0.8, 0.02),
            "poor": Variant("generated", 0.5, 0.02),
            "aligner": Variant("generated", 0.9, attention=0.8, parameters=7)}  # fmt: skip
TRANSLATED = {"hypothesis", "nll", "tokens", "bleu", "exact"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Four variants: one also as an ensemble, and an aligner, which translates nothing."""
    folder = build(tmp_path_factory.mktemp("runs"), VARIANTS, examples=60, seeds=(1, 2))
    change_json(folder / "attentive/metrics.json", lambda content: content.update(ensemble=together(content)))
    shutil.copytree(folder / "attentive/evaluation/seed1", folder / "attentive/evaluation/ensemble")
    change_json(folder / "aligner/metrics.json", only_alignments)
    for path in folder.glob("aligner/evaluation/seed*/examples.jsonl.gz"):
        rewrite_examples(path, lambda rows: [{k: row[k] for k in row.keys() - TRANSLATED} for row in rows])
    return load_results(folder)


def together(content):
    return {name: value + 1.0 for name, value in content["mean"].items()} | {"bleu_replaced": 55.5}


def only_alignments(content):
    for scores in (*content["seeds"].values(), content["mean"]):
        for name in set(scores) - {"aer", "alignment_accuracy"}:
            del scores[name]


def tables(blocks: list[Block]) -> list[Table]:
    return [block for block in blocks if isinstance(block, Table)]


def first_cells(table):
    return [plain_text(row[0]) for row in table.rows]


def text(blocks, tmp_path):
    return render(blocks, "md", title="", folder=tmp_path)


def test_translations_and_alignments_are_scored_in_tables_of_their_own(results):
    translations, more, alignments, by_length, offsets = tables(our_results(by_task(results), results, REPORT))
    assert first_cells(translations) == first_cells(more)
    assert first_cells(translations) == ["attentive", "attentive-ensemble", "plain", "poor"]
    assert translations.columns[3:5] == ("BLEU ↑", "BLEU, UNK replaced ↑")
    assert not {"AER ↓", "Alignment accuracy ↑"} & {*translations.columns, *more.columns}
    assert first_cells(alignments) == ["aligner", "attentive", "attentive-ensemble"]
    assert alignments.columns == ("Variant", "Parameters", "Updates", "Alignment accuracy ↑", "AER ↓")
    best = [words for row in translations.rows for mark, _, words in parts(row[3]) if mark == "strong"]
    assert len(best) == 1, "the highest BLEU is bold"
    assert best[0].startswith(f"{max(run.mean['bleu'] for run in results.values() if 'bleu' in run.mean):.2f}")
    assert first_cells(by_length) == ["attentive", "attentive-ensemble", "plain", "poor"]
    assert first_cells(offsets) == ["aligner", "attentive", "attentive-ensemble"]


def test_an_ensemble_is_explained_and_costs_nothing_of_its_own(results, tmp_path):
    tasks = by_task(results)
    page = text(our_results(tasks, results, REPORT), tmp_path)
    assert "An ensemble is the models of all seeds, judged once as one." in page
    assert "over seeds 1, 2" in page
    assert first_cells(tables(cost(tasks))[0]) == ["aligner", "attentive", "plain", "poor"]
    assert "| Seeds | 1, 2 |" in text(provenance(tasks), tmp_path)


def test_every_table_names_the_seeds_of_its_own_variants(tmp_path):
    folder = build(tmp_path / "runs", {name: Variant("generated", 0.9) for name in ("one", "two")}, examples=10)
    build(folder, {"other": Variant("generated", 0.9, attention=0.8)}, seeds=(4, 5), examples=10)
    build(folder, {"single": Variant("generated", 0.9)}, seeds=(6,), examples=10)
    for name, seeds in (("complexity", (11, 12)), ("counts", (1,))):
        (folder / name).mkdir()
        write_metrics(folder / name, name, "generated", {seed: {"self.path_n16": seed} for seed in seeds})
    found = load_results(folder)
    lines = text(our_results(by_task(found), found, REPORT), tmp_path).splitlines()
    assert [line for line in lines if "over seeds" in line] == [
        "Mean ± standard deviation over seeds 1, 2, 3 (`one`, `two`); 4, 5 (`other`); those without ± are of one seed.",
        "Mean ± standard deviation over seeds 4, 5.",  # of its attention, which the others do not have
        "Mean over seeds 11, 12.",
    ]


def paper(*rows):
    columns = [{"key": "ppl", "title": "Ppl.", "metric": "perplexity"}, {"key": "bleu", "title": "BLEU"}]
    table = {"id": "t1", "title": "t", "where": "Table 1", "provenance": "M", "columns": columns, "rows": rows}
    facts = {"short": "A", "title": "t", "authors": ("A",), "venue": "v", "year": 2015, "url": "https://a.org"}
    return Paper.model_validate(facts | {"tables": [table]})


def test_a_row_stands_beside_the_metric_that_it_names(results):
    """The column has none, the second row has one: the column of ours appears, and is empty elsewhere."""
    facts = paper(
        {"label": "one", "variants": ["attentive"], "ppl": 2.0, "bleu": 20.0},
        {"label": "all", "variants": ["attentive-ensemble"], "metrics": {"bleu": "bleu_replaced"},
         "ppl": None, "bleu": 50.0},
    )  # fmt: skip
    (table,) = tables(beside_the_paper(facts, by_task(results), "paper_scale"))
    assert table.columns[-2:] == ("BLEU", "BLEU, ours on generated (Δ)")
    assert [row[-1] for row in table.rows] == ["–", "55.50\N{NO-BREAK SPACE}(+5.50)"]
    ppl = [f"{results[name].mean['perplexity']:.2f}" for name in ("attentive", "attentive-ensemble")]
    assert [str(row[2]).split("\N{NO-BREAK SPACE}")[0] for row in table.rows] == ppl


def test_trees_are_drawn_by_the_measure_that_they_are_judged_by(tmp_path):
    folder = build(tmp_path / "runs", {"parser": Variant("generated", 0.9)}, examples=60, seeds=(1,))
    path = folder / "parser/evaluation/seed1/examples.jsonl.gz"
    rewrite_examples(path, lambda rows: [row | {"brackets": [2, 3, 3]} for row in rows])
    found = load_results(folder)
    (figure,) = draw_all([ScoresByLength()], found, tmp_path)
    assert figure.path.name == "bracket_f1_by_length_generated.png"
    assert "Bracket F1 against source length" in figure.caption
    assert str(tables(REPORT.tables(list(found.values())))[0].columns[0]) == "Bracket F1 by source length"


@pytest.mark.parametrize(("evidence", "said"), [
    ({"base": "generated"}, "Ours come from other data and"),
    ({"base": "paper's data", "study": "measured"}, "Ours come from the paper's data and"),
    ({"base": "paper's data", "other": "standard data"}, "Ours come from the paper's and other data and"),
])  # fmt: skip
def test_whose_data_ours_come_from_is_said(tmp_path, evidence, said):
    found = load_results(build(tmp_path / "runs", {"base": Variant("generated", 0.9)}, examples=10))
    facts = paper({"label": "base", "variants": ["base"], "ppl": None, "bleu": 20.0})
    blocks = beside_the_paper(facts, by_task(found), "bench", evidence)
    assert plain_text(blocks[1].text).startswith(said)


def test_every_variant_says_how_many_seeds_reach_the_floor_or_why_they_need_not(tmp_path):
    variants = {"good": Variant("generated", 0.97), "poor": Variant("generated", 0.5)}
    tasks = by_task(load_results(build(tmp_path, variants, examples=60)))
    for exempt in ({}, {"poor": "it is poor"}):
        floor = Floor(metric="bleu", at_least=75.0, because="it is a test.", exempt=exempt)
        _, reasons, table = learned_blocks({"generated": floor}, tasks)
        assert plain_text(reasons.items[0]) == "generated: BLEU at least 75.00. It is a test."
        cells = [[plain_text(cell) for cell in row] for row in table.rows]
        assert [row[:3] for row in cells] == [["generated", "good", "3 of 3"], ["generated", "poor", "0 of 3"]]
        assert [row[3:] for row in cells] == ([[""], ["it is poor"]] if exempt else [[], []])


def test_a_floor_is_per_token_of_those_that_have_likelihoods(results):
    aligner = replace(results["aligner"], token="word")
    translator = replace(results["plain"], token="piece")
    floor = Floor(metric="nll_per_token", at_most=1.0, because="it is a test.")
    _, reasons, _ = learned_blocks({"generated": floor}, {"generated": [aligner, translator]})
    assert plain_text(reasons.items[0]).startswith("generated: NLL per piece")


@pytest.mark.parametrize(("dataset", "corpus", "said"), [
    ("generated_swaps", {}, "longer than any in train."),
    ("multi30k", {"train_pairs": 9667}, "Used are the first 9,667 pairs of train."),
    ("wikitext2", {"lines": {"test": 600, "valid": 500}}, "the first 600 lines of test, 500 lines of valid."),
    ("generated_tally", {"train_texts": 500}, "Used are 500 texts of train, drawn at random once."),
    ("mnist", {"images": {"train": 5000}}, "Used are the first 5,000 pictures of train."),
])  # fmt: skip
def test_title_splits_and_the_part_that_is_used_are_said(root, dataset, corpus, said):
    card = load_card(dataset, root / "data")
    data, folded = describe_data(card, SimpleNamespace(**corpus))
    text = plain_text(data.text)
    assert text.startswith(f"Data: {card.title}.")
    assert all(f"{split}: {what}" in text for split, what in card.splits.items())
    assert text.endswith(said)
    assert ("Used are" in text) == bool(corpus)
    assert [block.items for block in folded.blocks] == [card.traps]


@pytest.mark.parametrize(("values", "best", "end"), [
    ([0.1, 0.2, 0.4], 0.2, ""),
    ([0.1, 0.2, 0.4], 0.4, "largest"),
    ([0.4, 0.2, 0.1], 0.1, "smallest"),
    ([0.1, 0.2], None, ""),
    (["linear", "cosine"], "cosine", ""),
    ([False, True], True, ""),
])  # fmt: skip
def test_the_end_of_what_was_tried_is_known(values, best, end):
    assert end_of(values, best) == end


DAYS = [{"commit": "a" * 40, "date": f"2026-01-0{day}T00:00:00+00:00"} for day in (1, 3)]
PLAN = DAYS[1] | {"claims": {"C1": {"frozen": DAYS}, "C2": {"frozen": DAYS[:1]}}}
ON = "the comparison, the floors and the settings are as they were frozen on 2026-01-03"
SOME = "1 of 3 runs that decide had ended by then"
AGAIN = ". It replaced 1 plan, of 2026-01-01"
RUNS = {"first": SimpleNamespace(seeds=(0, 1), runs={0: {"finished": "2026-01-02"}, 1: {"finished": "2026-01-04"}}),
        "second": SimpleNamespace(seeds=(0,), runs={0: {"finished": "2026-01-05"}})}  # fmt: skip


@pytest.mark.parametrize(("plan", "claim", "decided", "expected"), [
    (PLAN, "C1", {"variants": ("first", "second")}, f"{ON}; {SOME}{AGAIN}"),
    (PLAN, "C1", {"variants": ("second",)}, f"{ON}{AGAIN}"),
    # The other seeds of a variant decide another claim.
    (PLAN, "C1", {"variants": ("first", "second"), "seeds": (1,)}, f"{ON}{AGAIN}"),
    (PLAN, "C1", {"variants": ("second",), "doubled": ("first",)}, f"{ON}; {SOME}{AGAIN}"),
    (PLAN | {"claims": {"C1": {"frozen": [DAYS[0] | {"verdict": "inconclusive"}, DAYS[1]]}}}, "C1",
     {"variants": ("second",)}, f"{ON}{AGAIN} (inconclusive)"),
    (PLAN, "C2", {"variants": ("first",), "changed": ("a",)}, "changed since it was frozen on 2026-01-01: a"),
    (None, "C2", {"variants": ("first",)}, "none was frozen before the runs"),
])  # fmt: skip
def test_runs_older_than_the_plan_of_their_claim_are_counted_and_earlier_plans_named(plan, claim, decided, expected):
    lead = SimpleNamespace(variants=decided["variants"], seeds=decided.get("seeds", (0, 1)))
    claim = SimpleNamespace(id=claim, primary=SimpleNamespace(doubled=decided.get("doubled", ())))
    decision = SimpleNamespace(claim=claim, lead=lead, changed=decided.get("changed", ()))
    assert since_frozen(Frozen(plan=plan), decision, deciding_records(decision, RUNS)) == expected


SETTINGS = {"corpus": {"size": 1}, "model": {"width": 2}, "training": {"updates": 3}, "evaluation": {"beam": 4}}


@pytest.fixture
def planned_results(tmp_path):
    build(tmp_path, {"good": Variant("generated", 0.9), "poor": Variant("generated", 0.8)}, examples=5)
    for path in tmp_path.glob("*/train/*/run.json"):
        change_json(path, lambda record: record.update(parameters=SETTINGS, git_commit="abc", git_dirty=False))
    return load_results(tmp_path)


def said(folder, today=None):
    return [plain_text(block.text) for block in standing(load_results(folder), today or {})]


def test_clean_runs_of_todays_settings_are_current(planned_results, tmp_path):
    current = ["✔ Current: all runs are of committed code, with the settings of today."]
    assert said(tmp_path) == said(tmp_path, dict.fromkeys(planned_results, SETTINGS)) == current
    for key in ("corpus", "model", "training"):
        today = {"good": SETTINGS | {key: {}}, "poor": SETTINGS | {"evaluation": {}}}
        assert said(tmp_path, today) == ["⚠ Stale: good had runs with other settings than those of today; train again."]


@pytest.mark.parametrize(("changes", "today", "expected"), [
    ({"git_dirty": True}, {}, ["⚠ Uncommitted: good had runs with changes"]),
    ({"git_commit": None}, {"model": {}}, ["⚠ Of no known commit: good had runs", "⚠ Stale: good had runs with other"]),
    ({"fingerprint": "new"}, {}, ["⚠ Judged before: good were trained again since"]),
    ({"fingerprint": "old"}, {}, ["✔ Current"]),
])  # fmt: skip
def test_a_seed_that_nobody_can_repeat_is_said(planned_results, tmp_path, changes, today, expected):
    change_json(tmp_path / "good" / "train" / "seed2" / "run.json", lambda record: record.update(changes))
    costs = {"fingerprints": {"2": "old"}} if "fingerprint" in changes else {}
    (tmp_path / "good/evaluation/costs.json").write_text(json.dumps(costs))
    found = said(tmp_path, {"good": SETTINGS | today})
    assert [line[: len(start)] for line, start in zip(found, expected, strict=True)] == expected


def test_studies_train_nothing(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "metrics.json").write_text(json.dumps({"variant": "study", "task": "t", "seeds": {"1": {}}}))
    assert said(tmp_path) == []
