import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import PAD, UNK
from shared.tasks.classification.corpus import ClassifiedText
from tests.refused import assert_refused
from tests.tasks.in_process import prepared
from tests.tasks.in_process import write_columns as write

symbols = st.lists(st.integers(4, 90), min_size=1, max_size=6)


@st.composite
def rows(draw):
    """Texts of one language or pairs of two, each with a class."""
    sides = draw(st.integers(1, 2))
    return draw(st.lists(st.tuples(st.tuples(*[symbols] * sides), st.integers(0, 4)), min_size=1, max_size=8))


def text_of(rows):
    sides = zip(*(texts for texts, _ in rows), strict=True)
    return ClassifiedText(tuple(map(RaggedArray.pack, sides)), np.array([label for _, label in rows]))


@given(rows(), st.randoms())
def test_a_batch_is_what_padding_row_by_row_gives(rows, random):
    order = random.sample(range(len(rows)), random.randint(1, len(rows)))
    text = text_of(rows)
    batch = text.batch(np.array(order))
    for side, (padded, mask) in enumerate(zip(batch.texts, batch.masks, strict=True)):
        chosen = [rows[i][0][side] for i in order]
        width = max(map(len, chosen))
        assert padded.tolist() == [line + [PAD] * (width - len(line)) for line in chosen]
        assert [row[kept].tolist() for row, kept in zip(padded, mask, strict=True)] == chosen
        assert [text.lengths[side][i] for i in order] == [len(line) for line in chosen]
    assert padded.dtype == batch.labels.dtype == torch.int64
    assert batch.labels.tolist() == [rows[i][1] for i in order]
    assert batch.tokens == sum(len(line) for i in order for line in rows[i][0])


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "made"
    write(folder, "train", text=[f"w{i % 7} w{i % 5} the" for i in range(30)], label=["b", "a", "c"] * 10)
    write(folder, "valid", text=["w1 w2", "w3"], label=["a", "c"])
    write(folder, "test", text=["The new w1", "", "w2 w3 w4 w5"], label=["a", "b", "a"])
    return folder


def prepare(dataset, **changes):
    corpus = {"dataset": "made", "tokenizer": {"kind": "words", "size": 50}} | changes
    return prepared("classification", corpus, dataset, dataset.with_name("out"))


def test_preparing_learns_from_training_texts_alone_and_keeps_the_others(dataset):
    summary, task = prepare(dataset)
    assert task.classes == ("a", "b", "c")
    assert task.split("train").labels.tolist() == [1, 0, 2] * 10
    assert task.split("test").labels.tolist() == [0, 1, 0]
    assert task.lines("test") == (["The new w1", "", "w2 w3 w4 w5"],)
    assert task.lines("valid") == (["w1 w2", "w3"],)
    assert task.evidence("test") is None
    first, empty, last = (task.split("test").texts[0][i].tolist() for i in range(3))
    assert first == [UNK, UNK, task.tokenizer.encode(["w1"])[0][0]]
    assert empty == [UNK]
    assert task.tokenizer.decode([last]) == ["w2 w3 w4 w5"]
    assert summary["test"] == {
        "texts": 3, "symbols": 8, "unknown_share": 3 / 8, "cut_share": 0.0, "classes": {"a": 2, "b": 1, "c": 0},
    }  # fmt: skip


def test_texts_can_be_lower_cased_and_cut_in_every_split(dataset):
    summary, task = prepare(dataset, lower=True, max_tokens=2)
    assert {task.split(name).texts[0].lengths.max() for name in ("train", "valid", "test")} == {2}
    assert task.lines("test")[0][0] == "the new w1"
    assert task.split("test").texts[0][0].tolist() == [*task.tokenizer.encode(["the"])[0], UNK]
    assert (summary["train"]["cut_share"], summary["valid"]["cut_share"]) == (1.0, 0.0)
    assert summary["test"]["cut_share"] == pytest.approx(2 / 3)


def test_fewer_training_texts_are_a_fixed_choice_in_their_order(dataset):
    write(dataset, "train", text=[f"only{i}" for i in range(30)])
    _, task = prepare(dataset, train_texts=12)
    train = task.split("train")
    (words,) = task.tokenizer.decode([train.texts[0].flat])
    chosen = [int(word.removeprefix("only")) for word in words.split()]
    assert chosen == sorted({*chosen}) != list(range(12))
    assert train.labels.tolist() == [(1, 0, 2)[i % 3] for i in chosen]
    assert len(task.tokenizer) == 4 + 12
    assert np.array_equal(prepare(dataset, train_texts=12)[1].split("train").texts[0].flat, train.texts[0].flat)
    assert len(prepare(dataset, train_texts=99)[1].split("train")) == 30


def test_a_class_that_the_choice_of_training_texts_misses_is_still_a_class(dataset):
    assert sorted(prepare(dataset, train_texts=1)[0]["train"]["classes"].values()) == [0, 0, 1]


def test_the_two_texts_of_a_pair_share_a_tokenizer(dataset):
    write(dataset, "train", hypothesis=[f"v{i % 3}" for i in range(30)])
    write(dataset, "valid", hypothesis=["v1", "w1 v2"])
    write(dataset, "test", hypothesis=["v0", "w6", ""])
    summary, task = prepare(dataset, texts=["text", "hypothesis"], max_tokens=3)
    assert task.lines("valid") == (["w1 w2", "w3"], ["v1", "w1 v2"])
    first, second = task.split("valid").texts
    assert second[1].tolist() == task.tokenizer.encode(["w1 v2"])[0]
    assert first[0][0] == second[1][0]
    assert summary["test"]["symbols"] == 3 + 1 + 3 + 1 + 1 + 1
    assert summary["test"]["cut_share"] == pytest.approx(1 / 3)
    assert summary["vocabulary"] == 4 + 7 + 1 + 3


def test_evidence_beyond_the_cut_is_dropped(dataset):
    for split, lines in {"train": ["0"] * 30, "valid": ["1 0", "0"], "test": ["2", "", "3 1 1 0"]}.items():
        write(dataset, split, why=lines)
    assert prepare(dataset, evidence="why")[1].evidence("test") == [[2], [], [0, 1, 3]]
    _, task = prepare(dataset, evidence="why", max_tokens=2)
    assert task.evidence("test") == [[], [], [0, 1]]


@pytest.mark.parametrize(("changes", "files", "message"), [
    *(
        ({"evidence": "why"},
         {"train": {"why": ["0"] * 30}, "valid": {"why": ["", ""]}, "test": {"why": [wrong, "", ""]}},
         rf"test\.why, line 1: '{wrong}' must be .* of 3 words")
        for wrong in ("3", "-1", "1.0", "w1", "0 7")
    ),
    ({}, {"test": {"text": ["w1", "w2"], "label": ["a", "d"]}},
     r"test\.label, line 2: the class 'd' is none of a, b, c"),
    ({"classes": ["a", "b"]}, {}, r"train\.label, line 3: the class 'c' is none of a, b"),
    ({}, {"train": {"label": ["a"] * 30}}, "do not have two classes to choose from; check that 'label'"),
    ({"label": "stars"}, {}, r"train\.stars does not exist; run the fetch stage"),
    ({"test": ["test", "test_long"]}, {}, r"test_long\.text does not exist"),
    ({}, {"valid": {"label": ["a"]}}, r"split 'valid' in .* differ in length; fetch made again"),
    ({}, {"valid": {"text": [], "label": []}}, "no texts are left in split 'valid'"),
])  # fmt: skip
def test_what_cannot_be_prepared_is_named(dataset, changes, files, message):
    for split, columns in files.items():
        write(dataset, split, **columns)
    assert_refused(message, prepare, dataset, **changes)
