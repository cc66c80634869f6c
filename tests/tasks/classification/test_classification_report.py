"""What reports show of made-up classifiers: accuracies, tests of pairs, coloured texts."""

import random

import numpy as np
import pytest
from matplotlib.image import imread
from scipy.stats import binomtest

from shared.claims.results import load_results
from shared.claims.schema import Claims
from shared.claims.verdicts import decide
from shared.metrics.registry import corpus_values
from shared.reports.document import Table, plain_text
from shared.tasks.classification.figures import HeatRows, HeatTexts, lines_of_rows
from shared.tasks.classification.report import accuracies, paired_tests
from shared.tasks.examples import read_kept, write_kept
from tests import made_claims
from tests.refused import assert_refused
from tests.synthetic_runs import rewrite_examples, write_examples, write_metrics
from tests.tasks.in_process import draw_kept

SPACE = "\N{NO-BREAK SPACE}"
OURS = HeatTexts("ours", "Ours.")
CLASSES = ("negative", "neutral", "positive")
RIGHT = {"attention": 0.8, "max": 0.6, "penalty-0": 0.74, "rows-1": 0.7}
"""Made-up classifiers, and the share of texts that each has right."""


def build(folder, classifiers=RIGHT, *, seeds=(1, 2, 3), texts=150):
    """What the pipeline leaves of classifiers of the same texts, whose classes take turns."""
    for name, right in classifiers.items():
        scores = {}
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            rows = [example(index, rng.random() < right) for index in range(texts)]
            write_examples(folder / name / f"evaluation/seed{seed}/examples.jsonl.gz", rows)
            scores[seed] = corpus_values(rows)
        write_metrics(folder / name, name, "opinions", scores, "text")
    return folder


def example(index, right):
    label = CLASSES[index % 3]
    return {
        "id": f"test-{index}", "split": "test", "length": 10 + index % 20, "label": label,
        "predicted": label if right else CLASSES[(index + 1) % 3], "correct": int(right),
        "cross_entropy": 0.3 if right else 2.0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


def compared(first, second, kind="greater", metric="accuracy", **more):
    return made_claims.compared(kind, metric, first, second, relevant=1.0, **more)


def claim(number=1, *, primary, also=()):
    supporting = [{"name": f"row {place}"} | row for place, row in enumerate(also)]
    return made_claims.claim(number, primary=primary, supporting=supporting)


def decided(results, *claims):
    return decide(Claims.model_validate({"claims": claims}), results, "quick")


def tables(blocks):
    return [block for block in blocks if isinstance(block, Table)]


def by_variant(table):
    return {plain_text(row[0]): row[1:] for row in table.rows}


def test_accuracy_has_an_interval_around_it_and_classes_columns_of_their_own(results):
    first, by_class = tables(accuracies(list(results.values())))
    rows = by_variant(first)
    assert list(rows) == sorted(RIGHT)
    for name, (value, interval, texts) in rows.items():
        low, high = (float(end) for end in interval.strip("[]").split(f",{SPACE}"))
        assert float(value) == pytest.approx(results[name].mean["accuracy"], abs=0.006)
        assert low < float(value) < high
        assert texts == "150"
    assert by_class.columns == ("Accuracy by class, %", "negative (n = 50)", "neutral (n = 50)", "positive (n = 50)")
    cells = [float(cell) for cell in by_variant(by_class)["max"]]
    assert sum(cells) / 3 == pytest.approx(results["max"].mean["accuracy"], abs=0.1)


def test_other_splits_stand_apart_and_many_classes_do_not_stand_at_all(tmp_path):
    build(tmp_path, {"a": 0.7}, texts=40)
    hard = {"split": "test_hard", "correct": 0}
    paths = [*tmp_path.glob("a/evaluation/seed*/examples.jsonl.gz")]
    for path in paths:
        rewrite_examples(path, lambda rows: [
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
    for path in paths:
        rewrite_examples(path, lambda rows: [{k: v for k, v in row.items() if k != "correct"} for row in rows])
    assert accuracies(list(load_results(tmp_path).values())) == []


def test_every_pair_that_claims_compare_is_tested_once_by_each_seed(results):
    decisions = decided(
        results,
        claim(1, primary=compared("attention", "max"),
              also=[compared("attention", "never-run"), compared("attention", "penalty-0", "equal"),
                    compared("attention", "max", "less", "cross_entropy"),
                    made_claims.compared("greater", "accuracy", "max", relevant=1.0, than=50.0)]),
        claim(2, primary=compared("attention", "max", "less"),
              also=[compared("attention", "max", where={"label": "neutral"})]),
        made_claims.claim(3),
    )  # fmt: skip
    _, table, _ = paired_tests(decisions, results)
    assert [(row[0], plain_text(row[1]), row[2], row[3]) for row in table.rows] == [
        (*pair, seed)
        for pair in (("T99-C1", "attention – max", "all"), ("T99-C1", "attention – penalty-0", "all"),
                     ("T99-C2", "attention – max", "label neutral"))
        for seed in ("1", "2", "3")
    ]  # fmt: skip
    only_nats = claim(primary=compared("attention", "max", "less", "cross_entropy"))
    assert paired_tests(decided(results, only_nats), results) == []


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


def test_only_seeds_that_both_have_are_tested_and_the_same_texts(tmp_path):
    build(tmp_path, {"attention": 0.8}, texts=40)
    build(tmp_path, {"max": 0.6}, texts=40, seeds=(2,))
    results = load_results(tmp_path)
    decisions = decided(results, claim(primary=compared("attention", "max")))
    assert [row[3] for row in paired_tests(decisions, results)[1].rows] == ["2"]
    results["max"].examples[2][0]["id"] = "another"
    assert_refused(r"max, seed 2, cannot be paired", paired_tests, decisions, results)


def kept(path, *lines, rows=1, predicted="good", evidence=None, weights=None):
    """Each line is a text; its row k looks at word k only, unless weights (rows, n) are given."""
    more = {} if evidence is None else {"evidence": np.array(evidence)}
    write_kept(path, [
        {"words": line.split(), "label": "good", "predicted": predicted,
         "weights": np.float32(np.eye(rows, len(line.split())) if weights is None else weights)} | more
        for line in lines
    ])  # fmt: skip
    return path


def compare(folder, **sources):
    return draw_kept(HeatRows(list(sources), "With and without."), folder, **sources)


def test_a_words_shade_is_its_mean_weight_over_the_largest_and_evidence_is_marked(tmp_path):
    source = kept(tmp_path / "a.npz", *["one two three"] * 6, predicted="bad", evidence=[2], rows=2,
                  weights=[[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])  # fmt: skip
    (heat,) = draw_kept(OURS, tmp_path, ours=source)
    assert heat.lines[0].shades == pytest.approx([1.0, 0.5, 1.0])
    assert [line.title for line in heat.lines] == [f"({letter}) good, predicted bad ✘" for letter in "abcd"]
    assert {line.marked for line in heat.lines} == {frozenset({2})}


def test_rows_are_evenly_chosen_and_named(tmp_path):
    text = " ".join(f"w{i}" for i in range(30))
    counts = {"many": 30, "few": 3, "one": 1}
    sources = {name: kept(tmp_path / f"{name}.npz", text, rows=rows) for name, rows in counts.items()}
    lines = [line for name, path in sources.items() for line in lines_of_rows(name, read_kept(path)[0])]
    assert [line.name for line in lines] == ["1", "7", "13", "18", "24", "30", "1", "2", "3", "1"]
    assert [line.shades.index(1.0) for line in lines] == [0, 6, 12, 17, 23, 29, 0, 1, 2, 0]
    (explorer,) = compare(tmp_path, **sources)
    assert [(each.choices["Model"], len(each.rows)) for each in explorer.maps] == [("many", 30), ("few", 3), ("one", 1)]


@pytest.mark.parametrize(("lengths", "drawn"), [((5, 40, 28, 9), 28), ((50, 35, 44), 35)])
def test_the_rows_are_of_the_longest_text_that_fits_or_the_shortest(tmp_path, lengths, drawn):
    source = kept(tmp_path / "a.npz", *(" ".join(["word"] * n) for n in lengths))
    (explorer,) = compare(tmp_path, a=source, b=source)
    assert {len(each.columns) for each in explorer.maps} == {drawn}
    assert_refused("c is not of the same texts", compare, tmp_path, a=source, c=kept(tmp_path / "c.npz", "one three"))


def test_nothing_is_drawn_of_models_without_attention(tmp_path):
    source = kept(tmp_path / "a.npz", "one two")
    assert draw_kept(OURS, tmp_path / "figures", ours=tmp_path / "none.npz") == []
    assert compare(tmp_path / "figures") == []
    assert compare(tmp_path / "figures", a=source, max=tmp_path / "none.npz") == []
    assert not (tmp_path / "figures").exists()
    assert len(compare(tmp_path / "figures", a=source)) == 1


def test_what_the_font_lacks_and_what_is_too_long_is_drawn_inside_the_picture(tmp_path):
    """No warning of a missing glyph, no formula between dollars, and a white margin on the right."""
    text = f"costs $5 or $10 in 日本 ﷽\N{ZERO WIDTH SPACE} {'https://' + 'a' * 500} {'mmm ' * 60}"
    source = kept(tmp_path / "a.npz", text, rows=9)
    (heat,) = draw_kept(OURS, tmp_path, ours=source)
    assert "日本" in heat.lines[0].words
    assert (imread(heat.path)[:, -3:, :3] > 0.95).all()
