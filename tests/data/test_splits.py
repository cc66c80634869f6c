"""Splits are disjoint and written whole; columns of storage; data prepared with other settings; and batches."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.config import build
from shared.data.batching import endless_batches, epoch_batches
from shared.data.splits import EQUAL, Segment, assert_disjoint, hashed_split, sentence, write_corpus
from shared.data.storage import check_prepared, read_columns, read_summary, write_lines, write_summary
from shared.tasks.translation.settings import ParallelCorpusConfig
from tests.refused import assert_refused, sentence_of

LANGUAGES = ["en", "fr"]
ONE = [("Thus he spoke.", "thus, he SPOKE"), ("«a» – b…", "a b"), ("don't", "don’t")]
TWO = [
    ("वह आया", "वह आयी"), ("वह आया", "वह आये"),
    ("1 - 2", "1 2"), ("1 / 2", "1 2"), ("C", "C++"), ("x < y", "x > y"), ("5 %", "5"), ("$5", "€5"), ("-5", "5"),
    ("1.5", "1,5"), ("1.5", "1 5"), ("x²", "x2"), ("👍🏽", "👍🏿"), ("?", "!"), ("a = b", "a ≠ b"), ("كَتَبَ", "كُتِبَ"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "equal"), [(*pair, True) for pair in ONE] + [(*pair, False) for pair in TWO])
def test_sentences_are_equal_by_letters_marks_and_signs(one, other, equal):
    assert (sentence(one) == sentence(other)) == equal


def test_a_language_that_is_not_compared_may_be_shared(tmp_path):
    pairs = {"train": [("a", "tree"), ("c", "bush")], "valid": [("b", "tree")], "test": [("c", "tree")]}
    corpus = {split: list(map(Segment, own)) for split, own in pairs.items()}
    assert write_corpus(corpus, LANGUAGES, tmp_path, compared=["en"]) == {("train", EQUAL): 1}
    assert (tmp_path / "train.fr").read_text() == "tree\n"
    assert_disjoint(tmp_path, ["en"], corpus)
    assert "shares 'tree' with" in sentence_of(assert_disjoint, tmp_path, LANGUAGES, corpus)


def test_documents_are_never_torn_apart_and_old_ones_never_move():
    pages = {f"page{i}": hashed_split(f"page{i}") for i in range(2000)}
    shares = [sum(split == name for split in pages.values()) / 2000 for name in ("train", "valid", "test")]
    assert shares == pytest.approx([0.92, 0.04, 0.04], abs=0.02)


def test_columns_are_read_together_and_must_be_of_one_length(tmp_path):
    for name, lines in {"en": ["a", "b"], "fr": ["c", "d"], "key": ["1", "2"]}.items():
        write_lines(tmp_path / f"test.{name}", lines)
    columns = read_columns(tmp_path, "test", ["en", "fr"], optional=["align", "key"])
    assert columns == {"en": ["a", "b"], "fr": ["c", "d"], "key": ["1", "2"]}
    assert_refused(r"test\.align does not exist; run the fetch stage", read_columns, tmp_path, "test", ["en", "align"])
    write_lines(tmp_path / "test.key", ["1"])
    assert_refused(f"differ in length; fetch {tmp_path.name}", read_columns, tmp_path, "test", ["en"], optional=["key"])


CORPUS = {"dataset": "toy", "source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 12}}


def corpus(**changes: object) -> ParallelCorpusConfig:
    return build(ParallelCorpusConfig, CORPUS | changes, where="test")


def test_the_same_settings_pass_and_defaults_count_as_given(tmp_path: Path) -> None:
    summary = write_summary(tmp_path, corpus(), {"vocabulary": 12})
    assert read_summary(tmp_path) == summary
    assert summary["vocabulary"] == 12
    check_prepared(tmp_path, corpus(max_words=10_000))


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert "does not say" in sentence_of(check_prepared, tmp_path, corpus())


lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=120)
equal = {"equal_lengths": st.booleans()}
sizes = {"tokens": st.integers(1, 200)}, {"sentences": st.integers(1, 20)}
budget = st.one_of(*(st.fixed_dictionaries(each, optional=equal) for each in sizes))


def axes_of(pairs):
    return tuple(np.array(axis) for axis in zip(*pairs, strict=True))


@given(lengths, budget, st.integers(1, 50), st.integers(0, 5))
def test_every_example_is_in_one_batch_and_budgets_hold(pairs, budget, pool, epoch):
    axes = axes_of(pairs)
    batches = epoch_batches(axes, pool=pool, seed=1, epoch=epoch, **budget)
    assert sorted(itertools.chain(*(batch.tolist() for batch in batches))) == list(range(len(pairs)))
    for batch in batches:
        if "tokens" in budget:
            assert len(batch) == 1 or len(batch) * axes[0][batch].max() <= budget["tokens"]
        else:
            assert len(batch) <= budget["sentences"]
        if budget.get("equal_lengths"):
            assert len(set(axes[0][batch].tolist())) == 1


@given(lengths, budget, st.integers(0, 300))
def test_a_resumed_stream_is_the_tail_of_the_whole_one(pairs, budget, start):
    axes = axes_of(pairs)
    whole = endless_batches(axes, pool=3, seed=9, **budget)
    resumed = endless_batches(axes, pool=3, seed=9, start=start, **budget)
    for expected, batch in zip(itertools.islice(whole, start, start + 5), resumed, strict=False):
        assert np.array_equal(expected, batch)


def test_the_order_depends_on_seed_and_epoch_and_nothing_else():
    axes = (np.arange(1, 200), np.arange(1, 200)[::-1])

    def order(seed, epoch):
        return np.concatenate(epoch_batches(axes, pool=4, seed=seed, epoch=epoch, sentences=5)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


@given(lengths, st.integers(1, 9), st.integers(1, 3))
def test_of_equal_lengths_only_the_last_batch_of_each_is_smaller_whatever_the_pool(pairs, sentences, pool):
    axes = axes_of(pairs)
    batches = epoch_batches(axes, pool=pool, seed=1, epoch=2, sentences=sentences, equal_lengths=True)
    sizes = sorted((int(axes[0][batch[0]]), -len(batch)) for batch in batches)
    expected = [
        (length, -min(sentences, count - begin))
        for length, count in Counter(axes[0].tolist()).items() for begin in range(0, count, sentences)
    ]  # fmt: skip
    assert sizes == sorted(expected)
