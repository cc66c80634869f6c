from pathlib import Path

import pytest

from shared.data.splits import EMPTY, EQUAL, Accompanied, Segment, assert_disjoint, hashed_split, sentence, write_corpus
from shared.errors import ReplicationError

LANGUAGES = ["en", "fr"]
ONE = [
    ("Thus he spoke.", "thus, he SPOKE"),
    ("e\u0301t\u00e9", "\u00e9te\u0301"),
    ("«a» – b…", "a b"),
    ("so\u00adft", "soft"),
    ("don't", "don’t"),
    ("Straße", "STRASSE"),
]
TWO = [
    ("वह आया", "वह आयी"), ("वह आया", "वह आये"),
    ("1 + 2", "1 * 2"), ("1 - 2", "1 + 2"), ("1 - 2", "1 2"), ("1 / 2", "1 2"),
    ("C", "C++"), ("C", "C#"), ("x < y", "x > y"), ("5 %", "5"), ("$5", "€5"), ("-5", "5"),
    ("1.5", "1,5"), ("1.5", "1 5"),
    ("x²", "x2"), ("😀", "😃"), ("👍🏽", "👍🏿"), ("a & b", "a b"), ("?", "!"), ("a = b", "a ≠ b"), ("كَتَبَ", "كُتِبَ"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "equal"), [(*pair, True) for pair in ONE] + [(*pair, False) for pair in TWO])
def test_sentences_are_equal_by_letters_marks_and_signs(one, other, equal):
    assert (sentence(one) == sentence(other)) == equal


def test_a_language_that_is_not_compared_may_be_shared(tmp_path):
    corpus = {
        "train": [Segment(("a", "tree")), Segment(("c", "bush"))],
        "valid": [Segment(("b", "tree"))],
        "test": [Segment(("c", "tree"))],
    }
    assert write_corpus(corpus, LANGUAGES, tmp_path, compared=["en"]) == {("train", EQUAL): 1}
    assert (tmp_path / "train.fr").read_text() == "tree\n"
    assert_disjoint(tmp_path, ["en"], corpus)
    with pytest.raises(ReplicationError, match="shares 'tree' with"):
        assert_disjoint(tmp_path, LANGUAGES, corpus)


def test_repetitions_inside_a_split_and_empty_texts_stay_and_are_counted(tmp_path):
    corpus = {
        "train": [Segment(("a", "")), Segment(("a", ""))],
        "valid": [Segment(("b", ""))],
        "test": [Segment(("c", ""))],
    }
    corpus["train"].insert(1, "there is a reason")
    counts = {("train", EMPTY): 2, ("train", "there is a reason"): 1, ("valid", EMPTY): 1, ("test", EMPTY): 1}
    assert write_corpus(corpus, LANGUAGES, tmp_path) == counts
    assert (tmp_path / "train.fr").read_bytes() == b"\n\n"


def test_keys_and_links_are_written_beside_the_texts(tmp_path):
    corpus = {name: [Segment((name, name), key="1:1:1", links="0-0")] for name in ("train", "valid", "test")}
    write_corpus(corpus, LANGUAGES, tmp_path)
    assert (tmp_path / "valid.key").read_text() == "1:1:1\n"
    assert (tmp_path / "valid.align").read_text() == "0-0\n"


def test_an_empty_split_is_an_error(tmp_path):
    corpus = {"train": [], "valid": [Segment(("a", "b"))], "test": [Segment(("c", "d"))]}
    with pytest.raises(ReplicationError, match="'train' came out empty"):
        write_corpus(corpus, LANGUAGES, tmp_path)


def test_documents_are_never_torn_apart_and_old_ones_never_move():
    pages = {f"page{i}": hashed_split(f"page{i}") for i in range(2000)}
    shares = [sum(split == name for split in pages.values()) / 2000 for name in ("train", "valid", "test")]
    assert shares == pytest.approx([0.92, 0.04, 0.04], abs=0.02)


def test_what_a_corpus_has_beside_its_splits_is_written_too(tmp_path: Path):
    files = {"pictures": "first\nsecond\u2028\n", "numbers": b"\r\n\xff\x00"}
    corpus = Accompanied({"test": [Segment(("a", "b"))]}, files)
    assert write_corpus(corpus, LANGUAGES, tmp_path) == {}
    assert {path.name for path in tmp_path.iterdir()} == {"test.en", "test.fr", "pictures", "numbers"}
    assert (tmp_path / "pictures").read_bytes() == "first\nsecond\u2028\n".encode()
    assert (tmp_path / "numbers").read_bytes() == b"\r\n\xff\x00"
