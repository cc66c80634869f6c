"""The copy task: what is read and what is scored, what is kept and what is drawn anew."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.generated.sequences import FILE
from shared.tasks.sequences.copying import copies
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.sequences.toy_sequence_models import write_copies

words = st.lists(st.lists(st.integers(1, 10), min_size=1, max_size=12), min_size=1, max_size=6)
COUNTS = {"train": 90, "valid": 12, "test": 30}


@pytest.fixture
def fetched(tmp_path):
    folder = tmp_path / "toy"
    write_copies(folder)
    return folder


def prepared(fetched, **changes):
    corpus = {"of": "copies", "shortest": 3, "longest": 8, "sequences": COUNTS} | changes
    return in_process.prepared("sequences", corpus, fetched, fetched.parent / "out")


def written(split):
    batch = split.batch(np.arange(len(split)))
    return [tuple(row[scored].tolist()) for row, scored in zip(batch.targets, batch.scored, strict=True)]


@given(words)
@settings(max_examples=60)
def test_the_second_word_is_scored_and_nothing_else(words):
    split = copies(np.array([*map(len, words)]), lambda i: np.array(words[i]))
    batch = split.batch(np.arange(len(words)))
    width = 2 * max(map(len, words)) + 1
    assert split.lengths[0].tolist() == [2 * len(word) + 1 for word in words]
    assert batch.tokens == sum(map(len, words))
    for row, word in enumerate(words):
        n = len(word)
        whole = [0, *word, 0, *word]
        assert batch.inputs[row].tolist() == whole[:-1] + [0] * (width - 2 * n - 1)
        assert batch.targets[row, : 2 * n + 1].tolist() == whole[1:]
        assert batch.targets[row, batch.scored[row]].tolist() == word
        assert batch.scored[row].nonzero().flatten().tolist() == [*range(n + 1, 2 * n + 1)]
    lengths = {*map(len, words)}
    if len(lengths) == 1:
        assert batch.mask is None
    else:
        assert batch.mask.sum(1).tolist() == split.lengths[0].tolist()
        assert (batch.mask[:, 1:] <= batch.mask[:, :-1]).all()


def test_no_word_comes_twice_but_in_training_which_has_none_of_the_others(fetched):
    summary, task = prepared(fetched, sequences={"train": 5000, "valid": 60, "test": 90})
    train, valid, test = (written(task.split(name)) for name in ("train", "valid", "test"))
    assert len({*valid, *test}) == 150
    assert not {*train} & {*valid, *test}
    assert len({*train}) > 3000
    # Of the 125 words of three symbols, those that are not kept are all drawn.
    assert len({word for word in (*train, *valid, *test) if len(word) == 3}) == 125
    assert {symbol for word in train for symbol in word} == {1, 2, 3, 4, 5}
    assert task.symbols == summary["vocabulary"] == 6


def test_there_are_as_many_words_of_each_length(fetched):
    summary, task = prepared(fetched)
    for name, count in COUNTS.items():
        split = task.split(name)
        assert len(split) == summary["splits"][name]["sequences"] == count
        lengths = [*map(len, written(split))]
        assert Counter(lengths) == dict.fromkeys(range(3, 9), count // 6)
        assert summary["splits"][name]["symbols"] == sum(lengths)


def test_what_cannot_be_prepared_is_said(fetched):
    assert_refused("13 words of 2 symbols", prepared, fetched, shortest=2, longest=9, sequences=COUNTS | {"test": 84})
    for text, words in (('{"seed": 7', r"copy\.json is damaged"), ('{"seed": 7, "symbols": 1}', "'symbols'")):
        (fetched / FILE).write_text(text)
        assert_refused(words, prepared, fetched)
