"""Parallel text: no pair is lost, padding is what row by row gives, and what is prepared is what was read."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD, UNK
from shared.tasks.translation.corpus import ParallelText
from tests.refused import assert_refused
from tests.tasks.in_process import prepared, write_columns

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
