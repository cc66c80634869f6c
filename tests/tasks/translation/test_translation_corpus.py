"""Parallel text: no pair is lost, padding is what row by row gives; and what reports of translation show."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from shared.claims.results import RunResults
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD, UNK
from shared.metrics.registry import MEASURES
from shared.tasks.translation import report
from shared.tasks.translation.corpus import ParallelText
from tests.refused import assert_refused
from tests.synthetic_runs import SCORER, Variant, build, rewrite_examples
from tests.tasks.in_process import draw_kept, prepared, write_columns

symbols = st.lists(st.integers(4, 90), max_size=6)
pairs = st.lists(st.tuples(symbols, symbols), min_size=1, max_size=8)


def text_of(rows):
    longer = np.array([max(len(source), len(target)) for source, target in rows])
    return ParallelText(RaggedArray.pack([s for s, _ in rows]), RaggedArray.pack([t for _, t in rows]), longer)


@given(pairs, st.randoms())
def test_a_batch_is_what_padding_row_by_row_gives(rows, random):
    order = random.sample(range(len(rows)), random.randint(1, len(rows)))
    batch = text_of(rows).batch(np.array(order))

    def padded(lines):
        width = max(map(len, lines))
        return torch.tensor([line + [PAD] * (width - len(line)) for line in lines])

    assert torch.equal(batch.source, padded([rows[i][0] + [EOS] for i in order]))
    assert torch.equal(batch.labels, padded([rows[i][1] + [EOS] for i in order]))
    width = batch.labels.size(1)
    targets = [[BOS, *rows[i][1]] for i in order]
    assert torch.equal(batch.target, torch.tensor([t + [PAD] * (width - len(t)) for t in targets]))
    assert batch.tokens == sum(len(rows[i][1]) + 1 for i in order)
    assert torch.equal(batch.source_mask.sum(1), torch.tensor([len(rows[i][0]) + 1 for i in order]))


@given(pairs, st.integers(0, 6))
def test_pairs_that_are_too_long_are_left_out_in_order(rows, limit):
    keep = [row for row in rows if max(map(len, row)) <= limit]
    if not keep:
        assert_refused("raise max_words", text_of(rows).up_to, limit)
        return
    kept = text_of(rows).up_to(limit)
    assert [(kept.source[i].tolist(), kept.target[i].tolist()) for i in range(len(kept))] == keep


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "dataset"
    for split, lines in {"train": 40, "valid": 3, "test": 3}.items():
        source = [f"w{i % 7} w{i % 5}" for i in range(lines)] + ["", "only here"]
        target = [f"v{i % 5} v{i % 7}" for i in range(lines)] + ["only there", ""]
        write_columns(folder, split, en=source, fr=target)
    write_columns(
        folder, "test", en=["w1 new", "w2 w2", "w3 w3", "", "only here"], align=["0-1 1-0", "", "0-0", "", ""]
    )
    return folder


def prepare(dataset, **changes):
    corpus = {"dataset": "made", "source": "en", "target": "fr", "tokenizer": {"kind": "words", "size": 50}} | changes
    return prepared("translation", corpus, dataset, dataset.with_name("out"))


def test_preparing_learns_from_training_text_alone_and_keeps_the_test_text(dataset):
    summary, task = prepare(dataset)
    assert summary["train"]["pairs"] == 40  # pairs with an empty side are none
    assert task.source.encode(["new w1"])[0][0] == UNK
    assert task.lines("test") == (["w1 new", "w2 w2", "w3 w3"], ["v0 v0", "v1 v1", "v2 v2"])
    assert task.alignments("test") == ["0-1 1-0", "", "0-0"]
    assert task.alignments("valid") is None
    assert task.split("test").source[0].tolist() == task.source.encode(["w1 new"])[0]
    assert task.dictionary() == {}  # it is not asked for


def test_training_pairs_can_be_limited_in_length_ratio_and_number(dataset):
    (dataset / "train.en").write_text("a\nb c d\ne f\ng h\n")
    (dataset / "train.fr").write_text("x\ny\nz z z z z z\nq q\n")
    assert prepare(dataset, max_ratio=2.0)[0]["train"]["pairs"] == 2
    assert prepare(dataset, max_words=2)[0]["train"]["pairs"] == 2
    assert prepare(dataset, train_pairs=3)[0]["train"]["pairs"] == 3
    (dataset / "train.en").write_text("a b c d\n\n\n\n")
    assert_refused("no training pair of made is left", prepare, dataset, max_words=2)


def test_a_dictionary_is_learned_from_raw_words_that_were_seen_twice(dataset):
    for prefix, language, rest in (("w", "en", ["rare", "rare", "once"]), ("v", "fr", ["RARE", "RARE", "ONCE"])):
        pairs = [f"{prefix}{i} {prefix}{(i * 3 + 1) % 7}" for i in range(7)] * 2
        pairs += [f"{prefix}{i} {word}" for i, word in enumerate(rest)]
        write_columns(dataset, "train", **{language: pairs})
    summary, task = prepare(dataset, dictionary=True, tokenizer={"kind": "words", "size": 11})
    words = task.dictionary()
    assert task.source.encode(["rare"]) == [[UNK]]
    assert words["rare"] == "RARE"
    assert words["w1"] == "v1"
    assert "once" not in words
    assert summary["dictionary"] == len(words)


def test_a_missing_language_or_unequal_files_are_named(dataset):
    assert_refused(r"train\.de does not exist", prepare, dataset, target="de")
    (dataset / "train.fr").write_text("one line\n")
    assert_refused("differ in length; fetch dataset again", prepare, dataset)


@pytest.mark.parametrize("link", ["2-1", "1-2", "1?2", "0-9999999"])
def test_gold_links_of_words_that_a_pair_has_not_are_refused(dataset, link):
    (dataset / "test.align").write_text(f"0-1 1-0\n1-1 {link}\n\n\n\n")
    assert_refused(r"test\.align, line 2: '1-1 .*' has a place outside of a pair of 2 and", prepare, dataset)


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
