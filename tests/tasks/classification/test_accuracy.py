"""Accuracy of made-up classifiers: intervals, kinds of text, paired tests."""

import gzip
import json

import numpy as np
import pytest
from scipy.stats import binomtest

from shared.claims.results import load_results
from shared.claims.schema import Claims
from shared.claims.verdicts import decide
from shared.errors import ReplicationError
from shared.reports.document import Table, plain_text
from shared.reports.exhibits import by_task
from shared.reports.page import render
from shared.reports.runs import our_results
from shared.tasks.classification.accuracy import accuracies, paired_tests
from shared.tasks.classification.report import REPORT
from tests import made_claims
from tests.tasks.classification.synthetic_classification import CLASSIFIERS, Classifier, build

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


def tables(blocks):
    return [block for block in blocks if isinstance(block, Table)]


def by_variant(table):
    return {plain_text(row[0]): row[1:] for row in table.rows}


def test_accuracy_has_an_interval_around_it(results):
    first, *_ = tables(accuracies(list(results.values())))
    rows = by_variant(first)
    assert list(rows) == sorted(CLASSIFIERS)
    for name, (value, interval, texts) in rows.items():
        low, high = (float(end) for end in interval.strip("[]").split(f",{SPACE}"))
        assert float(value) == pytest.approx(results[name].mean["accuracy"], abs=0.006)
        assert low < float(value) < high
        assert texts == "150"


def test_sets_and_classes_have_columns_of_their_own(results):
    _, by_set, by_class = tables(accuracies(list(results.values())))
    assert by_set.columns == ("Accuracy by set, %", "movie (n = 100)", "news (n = 50)")
    assert by_class.columns == (
        "Accuracy by class, %", *(f"{name} (n = 50)" for name in ("negative", "neutral", "positive")),
    )  # fmt: skip
    movie, news = (float(cell) for cell in by_variant(by_set)["max"])
    assert (2 * movie + news) / 3 == pytest.approx(results["max"].mean["accuracy"], abs=0.1)


def rewrite(folder, edit):
    for path in folder.glob("*/evaluation/seed*/examples.jsonl.gz"):
        with gzip.open(path, "rt") as lines:
            rows = [json.loads(line) for line in lines]
        with gzip.open(path, "wt") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in edit(rows))


def test_other_splits_stand_apart_and_many_classes_do_not_stand_at_all(tmp_path):
    build(tmp_path, {"a": Classifier(0.7, sets=False)}, texts=40)
    hard = {"split": "test_hard", "correct": 0}
    rewrite(tmp_path, lambda rows: [
        *(row | {"label": row["id"]} for row in rows),
        *(row | hard | {"id": f"hard-{i}"} for i, row in enumerate(rows[:10])),
    ])  # fmt: skip
    (run,) = load_results(tmp_path).values()
    first, by_split = tables(accuracies([run]))
    accuracy = run.mean["accuracy"]
    assert by_variant(first)["a"][0] == f"{accuracy:.2f}"
    assert by_variant(first)["a"][2] == "40"
    assert by_split.columns == ("Accuracy by split, %", "test (n = 40)", "test_hard (n = 10)")
    assert by_variant(by_split)["a"] == [f"{accuracy:.1f}", "0.0"]


def test_what_classifies_nothing_has_no_accuracy(results, tmp_path):
    build(tmp_path, {"a": Classifier(0.7)}, texts=10)
    rewrite(tmp_path, lambda rows: [{k: v for k, v in row.items() if k != "correct"} for row in rows])
    assert accuracies(list(load_results(tmp_path).values())) == []


def test_scores_and_attention_stand_in_tables_of_their_own_and_no_token_is_explained(results, tmp_path):
    blocks = our_results(by_task(results), results, REPORT)
    scores, attention, *_ = tables(blocks)
    assert scores.columns == ("Variant", "Parameters", "Updates", "Accuracy ↑", "Cross-entropy per text, nats ↓")
    assert set(by_variant(attention)) == {"attention", "penalty-0", "rows-1"}
    assert by_variant(attention)["rows-1"][2] == "–"  # one row is not redundant
    page = render(blocks, "md", title="", folder=tmp_path)
    assert "Mean ± standard deviation over seeds 1, 2, 3.\n" in page
    assert "One token is" not in page


def decided(results, *claims):
    return decide(Claims.model_validate({"claims": claims}), results, "quick")


def compared(first, second, kind="greater", metric="accuracy", **more):
    return made_claims.compared(kind, metric, first, second, relevant=1.0, **more)


def claim(number=1, *, primary, also=()):
    supporting = [{"name": f"row {place}"} | row for place, row in enumerate(also)]
    return made_claims.claim(number, primary=primary, supporting=supporting)


def test_every_pair_that_claims_compare_is_tested_once_by_each_seed(results):
    decisions = decided(
        results,
        claim(1, primary=compared("attention", "max"),
              also=[compared("attention", "never-run"), compared("attention", "penalty-0", "equal"),
                    compared("attention", "max", "less", "cross_entropy"),
                    made_claims.compared("greater", "accuracy", "max", relevant=1.0, than=50.0)]),
        claim(2, primary=compared("attention", "max", "less"),
              also=[compared("attention", "max", where={"set": "news"})]),
        made_claims.claim(3),
    )  # fmt: skip
    heading, table, _ = paired_tests(decisions, results)
    assert heading.text == "Paired tests"
    shown = [(row[0], *plain_text(row[1]).split(" – "), row[2], row[3]) for row in table.rows]
    assert shown == [
        (*pair, seed)
        for pair in (("T99-C1", "attention", "max", "all"), ("T99-C1", "attention", "penalty-0", "all"),
                     ("T99-C2", "attention", "max", "set news"))
        for seed in ("1", "2", "3")
    ]  # fmt: skip
    assert {len(row) for row in table.rows} == {len(table.columns)} == {len(table.align)}


@pytest.mark.parametrize(("first", "second", "kind"), [("attention", "max", "greater"), ("max", "attention", "less")])
def test_a_seed_has_its_own_difference_and_mcnemars_counts(results, first, second, kind):
    decisions = decided(results, claim(primary=compared(first, second, kind)))
    for row in paired_tests(decisions, results)[1].rows:
        seed, difference, counts, p_value = row[3:]
        pair = [[example["correct"] for example in results[name].examples[int(seed)]] for name in (first, second)]
        assert difference == f"{100 * (np.mean(pair[0]) - np.mean(pair[1])):+.2f}".replace("-", "\N{MINUS SIGN}")
        only = [sum(a > b for a, b in zip(*sides, strict=True)) for sides in (pair, pair[::-1])]
        assert counts == f"{only[0]}{SPACE}/{SPACE}{only[1]}"
        p = binomtest(only[0], sum(only)).pvalue
        assert p_value == (f"<{SPACE}0.001" if p < 0.001 else f"{p:.3f}")


def test_only_seeds_that_both_have_are_tested(tmp_path):
    build(tmp_path, {"attention": CLASSIFIERS["attention"]})
    build(tmp_path, {"max": CLASSIFIERS["max"]}, seeds=(2,))
    results = load_results(tmp_path)
    decisions = decided(results, claim(primary=compared("attention", "max")))
    assert [row[3] for row in paired_tests(decisions, results)[1].rows] == ["2"]


def test_nothing_is_tested_where_no_accuracies_are_compared(results):
    primary = compared("attention", "max", "less", "cross_entropy")
    assert paired_tests(decided(results, claim(primary=primary)), results) == []


def test_other_texts_are_not_paired(tmp_path):
    results = load_results(build(tmp_path, texts=20))
    decisions = decided(results, claim(primary=compared("attention", "max")))
    results["max"].examples[2][0]["id"] = "another"
    with pytest.raises(ReplicationError, match=r"max, seed 2, cannot be paired"):
        paired_tests(decisions, results)
