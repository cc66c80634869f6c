"""What reports of translation show: scores by length, offsets of alignments, attention as data."""

import numpy as np
import pytest
from matplotlib.image import imread

from shared.claims.results import RunResults
from shared.metrics.registry import MEASURES
from shared.tasks.translation import report
from tests.refused import assert_refused
from tests.synthetic_runs import SCORER, Variant, build, rewrite_examples
from tests.tasks.in_process import draw_kept


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = build(tmp_path_factory.mktemp("runs"), {"a": Variant("generated", 0.9, attention=0.9)}, examples=120)
    return RunResults.load(folder / "a")


def test_bins_are_round_and_none_is_thin():
    lengths = [*range(1, 16)] * 10 + [17, 18]
    assert report.round_bins(lengths) == [(1, 5), (6, 10), (11, 20)]
    assert report.round_bins([5] * 30 + [45] * 30) == [(1, 40), (41, 50)]


def test_scores_of_a_bin_are_sacrebleus_and_an_empty_one_is_left_out(run):
    scores = report.score_by_length(run, MEASURES["bleu"], [(1, 5), (6, 10), (90, 99)])
    assert [score.bin for score in scores] == [(1, 5), (6, 10)]
    expected = []
    for rows in run.examples.values():
        chosen = [row for row in rows if 6 <= row["source_length"] <= 10]
        hypotheses, references = [r["hypothesis"] for r in chosen], [r["reference"] for r in chosen]
        expected.append(SCORER.corpus_score(hypotheses, [references]).score)
    assert scores[1].value == pytest.approx(np.mean(expected))
    assert scores[1].n == len(chosen)
    assert scores[1].interval[0] < scores[1].value < scores[1].interval[1]


def test_splits_of_other_sentences_are_left_out(tmp_path):
    folder = build(tmp_path, {"a": Variant("generated", 0.9)}, examples=60) / "a"
    bins, of, noisy = [(1, 5), (6, 20)], MEASURES["bleu"], {"split": "test_noisy", "bleu": [1] * 10}
    plain = report.score_by_length(RunResults.load(folder), of, bins)
    for path in folder.glob("evaluation/seed*/examples.jsonl.gz"):
        rewrite_examples(path, lambda rows: [*(row | noisy | {"id": f"noisy-{row['id']}"} for row in rows), *rows])
    blurred = RunResults.load(folder)
    assert {row["split"] for row in blurred.examples[blurred.seeds[0]]} > {"test_noisy"}
    assert report.score_by_length(blurred, of, bins) == plain


def test_offset_shares_sum_to_one(run):
    offsets = report.alignment_offsets(run)
    assert sum(offsets.values()) == pytest.approx(1.0)
    assert offsets[0] == pytest.approx(0.9, abs=0.05)
    assert list(offsets) == sorted(offsets)


def words(side, count):
    return np.array([f"{side}{k}" for k in range(count)])


def kept(path, *sizes, weights=np.ones):
    """A file of attention between so many target and source words of each sentence."""
    arrays = {}
    for i, (rows, columns) in enumerate(sizes):
        arrays |= {f"source_{i}": words("s", columns), f"target_{i}": words("t", rows)}
        arrays[f"weights_{i}"] = weights((rows, columns)).astype(np.float16)
    np.savez(path, **arrays)
    return path


def square(length, weights=np.ones):
    return {"weights": weights((length, length)), "source": words("$\\frac", length), "target": words("t", length)}


def compared(folder, **sources):
    return draw_kept(report.SideBySide([*sources], "Both."), folder, **sources)


def test_every_model_and_sentence_is_a_map(tmp_path):
    source = kept(tmp_path / "a.npz", (2, 3), (4, 2), weights=lambda shape: np.full(shape, 1 / shape[1]))
    (figure,) = compared(tmp_path, one=source, two=source, none=tmp_path / "missing.npz")
    shown = [(each.choices["Model"], each.choices["Sentence"]) for each in figure.maps]
    assert shown == [("one", "1"), ("one", "2"), ("two", "1"), ("two", "2")]
    assert (figure.maps[0].rows, figure.maps[0].columns) == (["t0", "t1"], ["s0", "s1", "s2"])
    assert np.array(figure.maps[0].weights) == pytest.approx(np.full((2, 3), 1 / 3), abs=1e-3)


def test_long_sentences_and_more_than_a_few_are_left_out():
    maps = report.maps_of_sentences({"one": [square(report.SYMBOLS + 1), *[square(2)] * (report.SENTENCES + 1)]})
    assert [len(each.rows) for each in maps] == [2] * report.SENTENCES


def test_words_with_dollar_signs_are_no_formulas_and_long_sentences_get_a_row_each(tmp_path):
    for i, length in enumerate((3, 40)):
        arrays = {f"{name}_{k}": value for k in range(2) for name, value in square(length).items()}
        np.savez(tmp_path / f"{i}.npz", **arrays)
        (figure,) = draw_kept(report.Heatmaps("a", "Seen."), tmp_path, a=tmp_path / f"{i}.npz")
        height, width, _ = imread(figure.path).shape
        assert (height > 1.8 * width) == (length == 40)
    assert draw_kept(report.Heatmaps("a", "Seen."), tmp_path, a=tmp_path / "none.npz") == []


def test_other_sentences_are_not_compared(tmp_path):
    sources = {"a": kept(tmp_path / "a.npz", (5, 5), (6, 6)), "b": kept(tmp_path / "b.npz", (5, 5), (7, 7))}
    assert_refused("b is not of the same texts as that of a", compared, tmp_path, **sources)
