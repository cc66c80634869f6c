"""What reports of translation show: scores by length, offsets of alignments, attention as data."""

import gzip
import json

import numpy as np
import pytest

from shared.claims.results import RunResults
from shared.metrics.registry import MEASURES
from shared.tasks.translation.heatmaps import SENTENCES, SYMBOLS, maps_of_sentences
from shared.tasks.translation.report import alignment_offsets, round_bins, score_by_length
from tests.synthetic_runs import SCORER, Variant, build


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = build(tmp_path_factory.mktemp("runs"), {"a": Variant("generated", 0.9, attention=0.9)}, examples=120)
    return RunResults.load(folder / "a")


def test_bins_are_round_and_none_is_thin():
    lengths = [*range(1, 16)] * 10 + [17, 18]
    assert round_bins(lengths) == [(1, 5), (6, 10), (11, 20)]
    assert round_bins([5] * 30 + [45] * 30) == [(1, 40), (41, 50)]


def test_scores_of_a_bin_are_sacrebleus(run):
    scores = score_by_length(run, MEASURES["bleu"], [(1, 5), (6, 10)])
    expected = []
    for rows in run.examples.values():
        chosen = [row for row in rows if 6 <= row["source_length"] <= 10]
        hypotheses, references = [r["hypothesis"] for r in chosen], [r["reference"] for r in chosen]
        expected.append(SCORER.corpus_score(hypotheses, [references]).score)
    assert scores[1].value == pytest.approx(np.mean(expected))
    assert scores[1].n == len(chosen)
    assert scores[1].interval[0] < scores[1].value < scores[1].interval[1]


def test_an_empty_bin_is_left_out(run):
    scores = score_by_length(run, MEASURES["bleu"], [(1, 5), (90, 99)])
    assert [score.bin for score in scores] == [(1, 5)]


def test_splits_of_other_sentences_are_left_out(tmp_path):
    folder = build(tmp_path, {"a": Variant("generated", 0.9)}, examples=60) / "a"
    bins, of = [(1, 5), (6, 20)], MEASURES["bleu"]
    plain = score_by_length(RunResults.load(folder), of, bins)
    for path in folder.glob("evaluation/seed*/examples.jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        noisy = [row | {"id": f"noisy-{row['id']}", "split": "test_noisy", "bleu": [1] * 10} for row in rows]
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps(row)}\n" for row in noisy + rows)
    blurred = RunResults.load(folder)
    assert {row["split"] for row in blurred.examples[blurred.seeds[0]]} > {"test_noisy"}
    assert score_by_length(blurred, of, bins) == plain


def test_offset_shares_sum_to_one(run):
    offsets = alignment_offsets(run)
    assert sum(offsets.values()) == pytest.approx(1.0)
    assert offsets[0] == pytest.approx(0.9, abs=0.05)
    assert list(offsets) == sorted(offsets)


def words(side, count):
    return np.array([f"{side}{k}" for k in range(count)])


def kept(path, lengths):
    arrays = {}
    for i, (rows, columns) in enumerate(lengths):
        arrays |= {f"source_{i}": words("s", columns), f"target_{i}": words("t", rows)}
        arrays[f"weights_{i}"] = np.full((rows, columns), 1 / columns, dtype=np.float16)
    np.savez(path, **arrays)
    return path


def test_every_model_and_sentence_is_a_map(tmp_path):
    source = kept(tmp_path / "a.npz", [(2, 3), (4, 2)])
    maps = maps_of_sentences({"one": source, "two": source, "none": tmp_path / "missing.npz"})
    assert [each.choices for each in maps] == [
        {"Model": model, "Attention": "to the source", "Sentence": sentence}
        for model in ("one", "two")
        for sentence in ("1", "2")
    ]
    assert maps[0].rows == ["t0", "t1"]
    assert maps[0].columns == ["s0", "s1", "s2"]
    assert np.array(maps[0].weights) == pytest.approx(np.full((2, 3), 1 / 3), abs=1e-3)


def test_long_sentences_and_more_than_a_few_are_left_out(tmp_path):
    lengths = [(SYMBOLS + 1, 3), *([(2, 3)] * (SENTENCES + 1))]
    maps = maps_of_sentences({"one": kept(tmp_path / "a.npz", lengths)})
    assert [len(each.rows) for each in maps] == [2] * SENTENCES
