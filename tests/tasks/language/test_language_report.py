"""What a report shows of language models: memory, position, recalls, effective context, speed, samples."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.reports.curves import LearningCurves
from shared.reports.document import Figure, Table, plain_text
from shared.reports.exhibits import by_task
from shared.reports.page import render
from shared.reports.runs import our_results
from shared.tasks.language.context_length_figures import context_blocks
from shared.tasks.language.context_lengths import with_context_lengths
from shared.tasks.language.evaluation_speed import by_length, draw_speed
from shared.tasks.language.figures import (
    ContextLengths,
    EvaluationSpeed,
    MemoryLengths,
    RecallDistances,
    Samples,
    SegmentPositions,
)
from shared.tasks.language.memory_figures import BY_MEMORY, BY_POSITION, by_distance, by_memory, by_position, loss_label
from shared.tasks.language.report import REPORT
from shared.tasks.language.sample_texts import sample_tables
from tests.reports.drawing import draw_all
from tests.synthetic_runs import skip, study
from tests.tasks.language.synthetic_language import CONTEXTS, MEMORIES, MODELS, build

GROUPS = {"bible": ["xl", "shaw", "lstm", "no-memory", "never-run"]}
SAMPLES = ["xl", "never-run", "shaw", "lstm"]
ASKED = [
    MemoryLengths({"longer memory": ["xl", "shaw", "no-memory"]}),
    SegmentPositions({"segments": ["xl", "no-memory", "never-run"], "one is left": ["xl", "never-run"]}),
    RecallDistances({"memory": ["recall-xl", "recall-no-memory"]}),
    ContextLengths(GROUPS),
    EvaluationSpeed("evaluation-speed"),
    EvaluationSpeed("never-run"),
    Samples(SAMPLES),
    LearningCurves(),
]
LENGTHS = (100, 200, 400)
SPEED = {
    f"{name}@{length}": value
    for length in LENGTHS
    for name, value in {
        "tokens_reuse": 1, "tokens_sliding": length, "token_ratio": length, "microseconds_reuse": 125.0,
        "microseconds_sliding": 10.0 * length, "speedup": 0.08 * length,
    }.items()
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = build(tmp_path_factory.mktemp("runs"), MODELS)
    study(folder, "evaluation-speed", "bible", SPEED)
    skip(folder, "never-run", "bible", "for no reason")
    return with_context_lengths(load_results(folder), GROUPS)


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, draw_all(ASKED, results, folder / "figures")


def changed(run, change):
    """The run with examples that ``change`` has gone over."""
    other = replace(run)
    other.__dict__["examples"] = {seed: [change(dict(row)) for row in rows] for seed, rows in run.examples.items()}
    return other


def cells(table):
    return [[plain_text(cell) for cell in row] for row in table.rows]


def test_the_figures_come_in_order_and_those_asked_for_only(report):
    folder, blocks = report
    names = [block.path.name for block in blocks if isinstance(block, Figure)]
    assert names == [
        "loss_by_memory_bible.png", "loss_by_position_bible.png", "recall_by_distance_recall.png",
        "contexts_bible.png", "speed_evaluation-speed.png", "training_loss_bible.png", "training_loss_recall.png",
    ]  # fmt: skip
    assert sorted(path.name for path in (folder / "figures").glob("*.png")) == sorted(names)
    assert {imread(folder / "figures" / name).shape[1] for name in names} == {1400}


def test_what_was_not_run_is_nowhere(report):
    folder, blocks = report
    page = render(blocks, "md", title="", folder=folder)
    assert "never-run" not in page
    assert "one is left" not in page


def test_nothing_asked_for_is_nothing_drawn_but_learning_curves(results, tmp_path):
    blocks = draw_all(REPORT.figures, results, tmp_path)
    assert {block.path.name.split("_")[0] for block in blocks} == {"training"}


def test_the_figures_are_the_same_twice(results, report, tmp_path):
    folder, _ = report
    draw_all(ASKED, results, tmp_path)
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes() == (folder / "figures" / path.name).read_bytes(), path.name


def test_the_memory_that_a_variant_is_judged_with_is_one_of_the_lengths(results):
    points = by_memory(results["xl"])
    assert sorted(points) == sorted({*MEMORIES, MODELS["xl"].memory})
    judged = [results["xl"].metrics[seed]["bits"] for seed in (1, 2, 3)]
    assert points[MODELS["xl"].memory] == pytest.approx(judged)
    assert by_memory(results["no-memory"]) == {}


def test_losses_of_other_splits_do_not_count(results):
    def add(row):
        return row | {"split": "other", "nll": 1e9, "memories": {"7": 1e9}} if row["id"] == "test-39" else row

    run = changed(results["xl"], add)
    assert 7.0 not in by_memory(run)
    assert max(by_memory(run)[32.0]) < 3.0


def test_positions_are_per_unit(results):
    """A symbol in two is a word, so a loss per symbol is half that per word."""
    rows = results["recall-xl"].examples[1]
    nats = sum(row["positions"][2][0] for row in rows)
    words = sum(row["positions"][2][1] for row in rows) / 2
    assert by_position(results["recall-xl"])[3.0][0] == pytest.approx(math.exp(nats / words))
    assert sorted(by_position(results["xl"])) == [float(part) for part in range(1, 9)]


def test_a_part_without_symbols_and_a_variant_without_parts_have_no_points(results):
    def clear(row):
        row["positions"] = [[0.0, 0], *row["positions"][1:]]
        return row

    assert sorted(by_position(changed(results["xl"], clear)))[0] == 2.0
    sliding = changed(results["xl"], lambda row: {k: v for k, v in row.items() if k != "positions"})
    assert by_position(sliding) == {}


def test_recalls_are_shares_of_each_distance(results):
    rows = results["recall-xl"].examples[2]
    found, count = (sum(row["recalls"]["64"][k] for row in rows) for k in (2, 1))
    assert by_distance(results["recall-xl"])[64.0][1] == pytest.approx(100 * found / count)
    assert max(by_distance(results["recall-no-memory"])[64.0]) < 20
    assert by_distance(results["xl"]) == {}


def test_losses_are_named_by_their_unit(results):
    assert loss_label(results["xl"]) == "Bits per character"
    assert loss_label(results["recall-xl"]) == "Perplexity per word"


def test_a_memory_of_nothing_alone_can_be_drawn(results, tmp_path):
    def change(row):
        return row | {"memories": {"0": row["nll"]}}

    run = changed(results["no-memory"], change)
    figure, table = BY_MEMORY.blocks({"a": run}, tmp_path, {"alone": ["a"]})
    assert figure.path.exists()
    assert table.columns[1:] == ("0",)


def test_a_table_has_the_numbers_of_its_figure(report, results):
    table = next(block for block in report[1] if isinstance(block, Table))
    assert table.columns == (
        "Bits per character, by memory (symbols of earlier segments)",
        "0",
        "16",
        "32",
        "64",
        "128",
    )
    assert [row[0] for row in cells(table)] == ["xl", "shaw"]
    assert cells(table)[0][3].startswith(f"{np.mean(by_memory(results['xl'])[32.0]):.3f} [")


def test_a_table_of_many_places_stands_upright(results, tmp_path):
    _, table = BY_POSITION.blocks(results, tmp_path, {"parts": ["xl", "shaw"]})
    assert table.columns == ("Bits per character, by part of the segment (of eight, in reading order)", "xl", "shaw")
    assert [row[0] for row in cells(table)] == [str(part) for part in range(1, 9)]
    assert cells(table)[2][1].split(" ")[0] == f"{np.mean(by_position(results['xl'])[3.0]):.3f}"
    assert len(table.align) == len(table.columns)


def test_effective_contexts_are_those_of_the_metrics(results, tmp_path):
    figure, table, said = context_blocks(results, tmp_path, GROUPS)
    assert figure.path.name == "contexts_bible.png"
    assert table.columns == ("Group bible", "r = 0.1", "r = 0.5", "r = 1.0")
    assert [row[0] for row in cells(table)] == ["xl", "shaw", "lstm", "no-memory"]
    assert cells(table)[0][3].startswith(f"{results['xl'].mean['recl_bible_100']:.0f} [")
    assert results["xl"].mean["recl_bible_100"] > results["shaw"].mean["recl_bible_100"] > CONTEXTS[1]
    assert "1 %" in said.text


def test_a_group_of_which_one_is_left_is_not_shown(results, tmp_path):
    assert context_blocks(results, tmp_path, {"alone": ["xl", "never-run"]}) == []
    assert list(tmp_path.iterdir()) == []


def test_speed_is_read_by_quantity_and_length(results, tmp_path):
    run = results["evaluation-speed"]
    assert by_length(run, "speedup") == {100.0: [8.0], 200.0: [16.0], 400.0: [32.0]}
    assert by_length(run, "speed") == {}
    assert not draw_speed(results["xl"], tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_samples_stand_beside_each_other_with_what_was_to_come(results):
    said, table = sample_tables(results, SAMPLES)
    assert "at temperature 0.8, from the 40 likeliest." in said.text
    assert table.columns == ("Beginning", "Continued by xl", "Continued by shaw", "True continuation")
    assert cells(table)[1] == [
        "In chapter 2 ¶ was | the",
        "word of xl. ¶ And so",
        "word of shaw. ¶ And so",
        "Word 2.",
    ]


def test_other_beginnings_have_a_table_of_their_own(tmp_path):
    found = load_results(build(tmp_path, {name: MODELS[name] for name in ("xl", "shaw")}, seeds=(1,)))
    path = found["shaw"].samples(1)
    path.write_text(json.dumps([{"prompt": "And", "text": " it", "true": " there"}]), encoding="utf-8")
    tables = [block for block in sample_tables(found, ["xl", "shaw"]) if isinstance(block, Table)]
    assert [table.columns[1] for table in tables] == ["Continued by xl", "Continued by shaw"]
    path.write_text("[", encoding="utf-8")
    with pytest.raises(ReplicationError, match=r"samples\.json cannot be read"):
        sample_tables(found, ["shaw"])


@pytest.mark.parametrize(
    "expected",
    [
        "| `xl` | 54,321 | 100 | **1.8",
        "Bits per character ↓ |",
        "Perplexity per word ↓ |",
        "| Number | at 100 | at 200 | at 400 |",
        "| microseconds reuse | 125 | 125 | 125 |",
        "| token ratio | 100 | 200 | 400 |",
    ],
)
def test_the_tables_of_results_have_the_measures_of_language(results, tmp_path, expected):
    page = render(our_results(by_task(results), results, REPORT), "md", title="", folder=tmp_path)
    assert expected in page
    assert "BLEU by" not in page


def test_html_has_every_figure_and_samples_escaped(report):
    folder, blocks = report
    html = render(blocks, "html", title="", folder=folder)
    assert html.count('src="figures/') == 7
    assert html.count("<figcaption>") == html.count(' alt="') == 7
    assert r"In chapter 1 ¶ was \| the" in render(blocks, "md", title="", folder=folder)
