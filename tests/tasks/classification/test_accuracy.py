"""Accuracy of made-up classifiers: intervals, kinds of text, paired tests."""

import gzip
import json

import numpy as np
import pytest
from scipy.stats import binomtest

from shared.claims.results import load_results
from shared.claims.schema import Claim
from shared.claims.verdicts import decide
from shared.errors import ReplicationError
from shared.reports.document import Table, render
from shared.reports.panels import by_task
from shared.reports.sections import our_results
from shared.tasks.classification.accuracy import accuracies, paired_tests
from shared.tasks.classification.report import REPORT
from tests.tasks.classification.synthetic_classification import CLASSIFIERS, Classifier, build

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


def tables(blocks):
    return [block for block in blocks if isinstance(block, Table)]


def by_variant(table):
    return {row[0].text: row[1:] for row in table.rows}


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
    assert scores.columns == ("Variant", "Parameters", "Updates", "Accuracy", "Cross-entropy per text, nats")
    assert set(by_variant(attention)) == {"attention", "penalty-0", "rows-1"}
    assert by_variant(attention)["rows-1"][2] == "–"  # one row is not redundant
    page = render(blocks, "md", title="", folder=tmp_path)
    assert "Mean ± standard deviation over seeds 1, 2, 3.\n" in page
    assert "One token is" not in page


def claim(number=1, *, deciding=(), also=()):
    facts = {"statement": "s", "where": "w", "effect_in_paper": {"text": "+1"}}
    return Claim.model_validate(facts | {"id": f"T17-C{number}", "deciding": deciding, "also": also})


def compared(first, second, **more):
    return {"name": f"{first} and {second} {more}", "kind": "greater", "metric": "accuracy",
            "variants": [first, second]} | more  # fmt: skip


def test_every_pair_that_claims_compare_is_tested_once(results):
    claims = [
        claim(1, deciding=[compared("attention", "max"), compared("attention", "never-run")],
              also=[compared("attention", "penalty-0", kind="equal", margin=50.0),
                    compared("attention", "max", metric="cross_entropy", kind="less")]),
        claim(2, deciding=[compared("attention", "max", margin=1.0),
                           compared("attention", "max", where={"set": "news"})]),
    ]  # fmt: skip
    decisions = decide(claims, results, "quick")
    heading, table, _ = paired_tests(decisions, results)
    assert heading.text == "Paired tests"
    shown = [(row[0], row[1][0].text, row[1][2].text, row[2]) for row in table.rows]
    assert shown == [
        ("T17-C1", "attention", "max", "all"), ("T17-C1", "attention", "penalty-0", "all"),
        ("T17-C2", "attention", "max", "set news"),
    ]  # fmt: skip
    assert {len(row) for row in table.rows} == {len(table.columns)} == {len(table.align)}


def test_a_pair_has_the_claims_difference_and_mcnemars_counts(results):
    decisions = decide([claim(deciding=[compared("attention", "max")])], results, "quick")
    _, table, _ = paired_tests(decisions, results)
    (outcome,) = decisions[0].outcomes
    difference, interval, seeds, counts, p_values = table.rows[0][3:]
    assert difference == f"{outcome.effect:+.2f}"
    assert interval == f"[{outcome.interval[0]:+.2f},{SPACE}{outcome.interval[1]:+.2f}]"
    assert seeds == "1, 2, 3"
    first, second = ([row["correct"] for row in results[name].examples[1]] for name in ("attention", "max"))
    only = [sum(a > b for a, b in zip(*pair, strict=True)) for pair in ((first, second), (second, first))]
    assert counts.split("; ")[0] == f"{only[0]}{SPACE}/{SPACE}{only[1]}"
    p = binomtest(only[0], sum(only)).pvalue
    assert p_values.split("; ")[0] == (f"<{SPACE}0.001" if p < 0.001 else f"{p:.3f}")
    gain = np.mean([results[name].mean["accuracy"] * sign for name, sign in (("attention", 2), ("max", -2))])
    assert outcome.effect == pytest.approx(gain)


def test_ratios_and_ladders_are_taken_apart(results):
    """Their differences are those that a claim about the same two variants has."""
    steps = [compared("max", "rows-1"), compared("rows-1", "penalty-0")]
    ladder = {"name": "l", "kind": "ladder", "metric": "accuracy", "variants": ["max", "rows-1", "penalty-0"]}
    ratio = compared("attention", "max", kind="ratio_at_least", bound=0.5)
    bound = {"name": "b", "kind": "above", "metric": "accuracy", "variant": "max", "bound": 1.0}
    found = {}
    for name, deciding in (("steps", steps), ("ladder", [ladder, ratio, bound])):
        decisions = decide([claim(deciding=deciding)], results, "quick")
        found[name] = paired_tests(decisions, results)[1].rows
    pairs = [(row[1][0].text, row[1][2].text) for row in found["ladder"]]
    assert pairs == [("max", "rows-1"), ("rows-1", "penalty-0"), ("attention", "max")]
    for own, from_ladder in zip(found["steps"], found["ladder"], strict=False):
        assert own[3] == from_ladder[3]
        assert own[5:] == from_ladder[5:]


def test_only_seeds_that_both_have_are_tested(tmp_path):
    build(tmp_path, {"attention": CLASSIFIERS["attention"]})
    build(tmp_path, {"max": CLASSIFIERS["max"]}, seeds=(2,))
    results = load_results(tmp_path)
    decisions = decide([claim(deciding=[compared("attention", "max")])], results, "quick")
    assert paired_tests(decisions, results)[1].rows[0][5] == "2"


def test_nothing_is_tested_where_no_accuracies_are_compared(results):
    comparison = compared("attention", "max", metric="cross_entropy", kind="less")
    assert paired_tests(decide([claim(deciding=[comparison])], results, "quick"), results) == []


def test_other_texts_are_not_paired(tmp_path):
    results = load_results(build(tmp_path, texts=20))
    decisions = decide([claim(deciding=[compared("attention", "max")])], results, "quick")
    results["max"].examples[2][0]["id"] = "another"
    with pytest.raises(ReplicationError, match=r"max, seed 2, cannot be paired"):
        paired_tests(decisions, results)
