import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.data.fetch import fetch
from shared.data.tokenizers import EOS, UNK
from tests.refused import assert_refused
from tests.tasks import in_process

texts = st.text(st.sampled_from("ab é\n"), min_size=1, max_size=40)
WORDS = {"kind": "words", "size": 50}


def write(folder, **columns):
    folder.mkdir(exist_ok=True)
    for name, text in columns.items():
        split, _, language = name.rpartition("_")
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{split}.{language}").write_bytes(data)


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "made"
    write(folder, train_text="a b b\n\nc a\n", valid_text="b new\n", test_text="c\na a")
    return folder


def prepare(dataset, **changes):
    corpus = {"dataset": "made", "tokenizer": WORDS} | changes
    return in_process.prepared("language", corpus, dataset, dataset.with_name("out"))


def read(prepared, split):
    """The stream in strings, with ⏎ for its line ends."""
    symbols = prepared.split(split).symbols.tolist()
    pieces = zip(symbols, prepared.tokenizer.pieces(symbols), strict=True)
    return ["⏎" if symbol == EOS else piece for symbol, piece in pieces]


def test_a_split_is_one_stream_in_the_order_of_its_text_and_training_alone_is_learned_from(dataset):
    summary, prepared = prepare(dataset)
    assert read(prepared, "train") == ["a", "b", "b", "⏎", "⏎", "c", "a", "⏎"]
    assert prepared.split("train").symbols.dtype == np.uint8  # as small as can be
    assert prepared.split("train").distances is None
    assert (prepared.summary["unit"], dict(prepared.units)) == ("word", {"train": 8, "valid": 3, "test": 4})
    assert summary["splits"]["valid"] == {"lines": 1, "units": 3, "symbols": 3, "unknown_share": 1 / 3}
    assert (summary["vocabulary"], summary["symbol"]) == (4 + 3, "word")
    assert {path.name for path in (prepared.folder / "train").iterdir()} == {"symbols.npy"}


@pytest.mark.parametrize("kind", ["characters", "bytes"])
@given(text=texts, line_ends=st.booleans(), chunk=st.integers(1, 9))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stream_of_letters_or_bytes_is_the_text_itself(tmp_path_factory, monkeypatch, kind, text, line_ends, chunk):
    if not (text if line_ends else text.replace("\n", "")):
        return
    # What is read and encoded at once must not show.
    monkeypatch.setattr("shared.tasks.language.corpus._CHUNK", chunk)
    dataset = tmp_path_factory.mktemp("corpus") / "made"
    write(dataset, train_text=text, valid_text=text, test_text=text)
    unit = kind.removesuffix("s")
    summary, prepared = prepare(dataset, tokenizer={"kind": kind}, unit=unit, end_of_line=line_ends)
    kept = text if line_ends else text.replace("\n", "")
    symbols = prepared.split("test").symbols.tolist()
    assert prepared.tokenizer.decode([symbols]) == [kept.replace("\n", "</s>")]
    assert prepared.units["test"] == len(symbols) == len(kept if kind == "characters" else kept.encode())
    assert (summary["unit"], summary["symbol"]) == (unit, unit)
    assert summary["splits"]["test"]["unknown_share"] == 0


@given(texts, st.booleans(), st.integers(1, 5))
@settings(max_examples=30)
def test_a_stream_of_words_is_the_lines_one_after_the_other(tmp_path_factory, text, line_ends, limit):
    dataset = tmp_path_factory.mktemp("corpus") / "made"
    write(dataset, train_text="a ab é\n", valid_text="a\n", test_text="a\n" + text)
    _, prepared = prepare(dataset, end_of_line=line_ends, lines={"test": limit})
    lines = [line + "\n" for line in ("a\n" + text).split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    expected = [word for line in lines[:limit] for word in line.replace("\n", " ⏎" if line_ends else "").split()]
    known = {"a", "ab", "é", "⏎"}
    assert read(prepared, "test") == [word if word in known else "<unk>" for word in expected]
    assert prepared.units["test"] == len(expected)


def test_pieces_are_counted_per_word_character_or_byte(dataset):
    write(dataset, train_text="the thé thaw\nthen that\n" * 4, test_text="the thé\nthaw")
    pieces = {"kind": "sentencepiece", "size": 24}
    for unit, count in (("word", 3 + 1), ("character", 7 + 1 + 4), ("byte", 8 + 1 + 4)):
        summary, prepared = prepare(dataset, tokenizer=pieces, unit=unit)
        assert (prepared.summary["unit"], prepared.units["test"]) == (unit, count)
        assert summary["symbol"] == "piece"
        symbols = prepared.split("test").symbols.tolist()
        assert symbols.count(EOS) == 1
        assert prepared.tokenizer.decode([symbols[: symbols.index(EOS)]]) == ["the thé"]


def test_bytes_of_a_character_that_a_cut_tore_apart_are_kept(dataset):
    write(dataset, train_text="aé".encode()[:-1], test_text=b"\xc3\na")
    _, prepared = prepare(dataset, tokenizer={"kind": "bytes"}, unit="byte")
    assert read(prepared, "train") == ["a", "<c3>"]
    assert read(prepared, "test") == ["<c3>", "⏎", "a"]
    assert_refused(r"train\.text is not UTF-8 text .* kind bytes", prepare, dataset)


def test_more_symbols_than_a_byte_has_room_for_stay_apart(dataset):
    write(dataset, train_text=" ".join(f"w{i}" for i in range(300)))
    _, prepared = prepare(dataset, tokenizer={"kind": "words", "size": 1000})
    assert len({*prepared.split("train").symbols.tolist()}) == 300


def test_words_are_counted_as_the_tokeniser_tells_them_apart(dataset):
    write(dataset, test_text="a, b.\nc")
    for split, count in (("space", 3 + 1), ("13a", 5 + 1)):
        _, prepared = prepare(dataset, tokenizer=WORDS | {"split": split})
        assert prepared.units["test"] == len(prepared.split("test")) == count


@pytest.mark.parametrize("changes", [{}, {"tokenizer": {"kind": "characters"}, "unit": "character"}])
def test_shuffled_lines_stay_whole_and_empty_ones_are_no_lines(dataset, monkeypatch, changes):
    monkeypatch.setattr("shared.tasks.language.corpus._CHUNK", 2)  # what is read at once must not show
    lines = [f"{i} a {i}" for i in range(20)]
    text = "\n \n".join(lines)  # the last one has no end
    write(dataset, train_text=text, test_text=text + "\n\n")
    summary, prepared = prepare(dataset, shuffled=True, **changes)
    orders = {}
    for split in ("train", "test"):
        symbols = read(prepared, split)
        assert symbols[-1] == "⏎"
        joined = ("" if changes else " ").join(symbols)
        orders[split] = [line.strip() for line in joined.split("⏎")[:-1]]
        assert orders[split] != lines
        assert sorted(orders[split]) == sorted(lines)
        assert summary["splits"][split]["lines"] == 20
        assert prepared.units[split] == len(symbols)
    assert orders["train"] != orders["test"]
    assert read(prepare(dataset, shuffled=True, **changes)[1], "train") == read(prepared, "train")


def test_recalls_mark_the_symbols_that_repeat_others(dataset):
    write(dataset, train_why="2-1\n\n1-0\n", valid_why="\n", test_why="\n1-0\n")
    summary, prepared = prepare(dataset, recalls="why")
    assert prepared.split("train").distances.tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert prepared.split("test").distances.tolist() == [0, 0, 0, 1]
    assert [summary["splits"][split]["recalls"] for split in ("train", "valid", "test")] == [2, 0, 1]
    _, prepared = prepare(dataset, recalls="why", end_of_line=False)
    assert prepared.split("train").distances.tolist() == [0, 0, 1, 0, 1]
    _, prepared = prepare(dataset, recalls="why", lines={"train": 2})
    assert prepared.split("train").distances.tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(("changes", "columns", "message"), [
    *(({"recalls": "why"}, {"train_why": f"{wrong}\n\n\n"}, rf"train\.why, line 1: '{wrong}' must be .* of 3 words")
      for wrong in ("1", "1-1", "0-1", "3-0", "x-0", "1-", "-1-0")),
    *(({"recalls": "why"}, {"train_why": "2-1" + "\n" * n}, rf"train\.why has {n} lines, and the text has 3")
      for n in (2, 4)),
    ({"language": "en"}, {}, r"train\.en does not exist; run the fetch stage"),
    ({}, {"valid_text": ""}, r"split 'valid' of .* has no text; check the card"),
])  # fmt: skip
def test_what_cannot_be_prepared_is_named(dataset, changes, columns, message):
    write(dataset, **{"valid_why": "\n", "test_why": "\n\n"} | columns)
    assert_refused(message, prepare, dataset, **changes)


def test_an_unknown_word_is_unknown_even_if_it_is_called_so(dataset):
    write(dataset, train_text="a <unk>\n", test_text="</s> <unk>\n")
    _, prepared = prepare(dataset)
    assert prepared.split("test").symbols.tolist() == [UNK, UNK, EOS]
    assert len(prepared.tokenizer) == 4 + 1


@pytest.mark.skipif(not os.environ.get("REPLICATIONS_MIRROR"), reason="REPLICATIONS_MIRROR is not set")
@pytest.mark.parametrize(("dataset", "types", "tokens"), [
    ("penn_treebank", 10_000, {"train": 929_589, "valid": 73_760, "test": 82_430}),
    ("wikitext2", 33_278, {"train": 2_088_628, "valid": 217_646, "test": 245_569}),
])  # fmt: skip
def test_benchmarks_have_the_tokens_of_the_literature(tmp_path, pytestconfig, dataset, types, tokens):
    shutil.copy(pytestconfig.rootpath / f"data/{dataset}.yaml", tmp_path)
    fetch(dataset, root=tmp_path)
    tokenizer = {"kind": "words", "size": 50_000}
    summary, prepared = prepare(tmp_path / dataset, tokenizer=tokenizer)
    assert dict(prepared.units) == tokens
    assert {name: len(prepared.split(name)) for name in tokens} == tokens
    # Padding and the start symbol never occur; <unk> and the end symbol do.
    assert summary["vocabulary"] == types + 2
