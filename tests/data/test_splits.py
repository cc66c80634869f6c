from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.data.opening import read_lines
from shared.data.splits import EMPTY, EQUAL, Accompanied, Segment, assert_disjoint, hashed_split, sentence, write_corpus
from shared.errors import ReplicationError

LANGUAGES = ["en", "fr"]
words = st.sampled_from(["a", "A", "b", "B!", "c", "«c»", "", "\u2028", "é", "e\u0301"])
texts = st.lists(words, max_size=3).map(" ".join)
segments = st.lists(st.tuples(texts, texts).map(Segment), max_size=12)


def anchored(split: str, corpus: list[Segment]) -> list[Segment]:
    """No split of an example may come out empty: give each a sentence that no other has."""
    return [*corpus, Segment((f"only {split}", f"seulement {split}"))]


@settings(max_examples=50)
@given(train=segments, valid=segments, test=segments, long=segments)
def test_written_splits_share_no_sentence(tmp_path_factory, train, valid, test, long):
    folder = tmp_path_factory.mktemp("corpus")
    splits = {"train": train, "valid": valid, "test": test, "test_long": long}
    corpus = {name: anchored(name, content) for name, content in splits.items()}
    left_out = write_corpus(corpus, LANGUAGES, folder)
    assert_disjoint(folder, LANGUAGES, corpus)
    assert left_out["test", EQUAL] == left_out["test_long", EQUAL] == 0
    for name, content in corpus.items():
        counts = {len(list(read_lines(folder / f"{name}.{language}"))) for language in LANGUAGES}
        assert counts == {len(content) - left_out[name, EQUAL]}


@given(text=st.text())
def test_sentence_is_idempotent_and_ignores_case(text):
    assert sentence(sentence(text)) == sentence(text)
    assert sentence(text.upper().lower()) == sentence(text.lower().upper().lower())


def test_one_shared_text_in_any_language_drops_the_whole_segment(tmp_path):
    corpus = {
        "train": [Segment(("Thus he spoke.", "x")), Segment(("y", "Il parla ainsi")), Segment(("z", "z"))],
        "valid": [Segment(("il parla: AINSI!", "w"))],
        "test": [Segment(("thus, he spoke", ""))],
    }
    assert write_corpus(corpus, LANGUAGES, tmp_path) == {("train", EQUAL): 2, ("test", EMPTY): 1}
    assert list(read_lines(tmp_path / "train.en")) == ["z"]


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


@pytest.mark.parametrize(
    ("held", "other"), [("test.fr", "train.en"), ("valid.en", "train.fr"), ("test.en", "valid.fr")]
)
def test_assert_disjoint_finds_a_leak(tmp_path, held, other):
    write_corpus({s: [Segment((f"{s} a", f"{s} b"))] for s in ("train", "valid", "test")}, LANGUAGES, tmp_path)
    leak = (tmp_path / held).read_text().upper()
    with (tmp_path / other).open("a") as file:
        file.write(leak)
    with pytest.raises(ReplicationError, match=f"{other} shares .* with {held}"):
        assert_disjoint(tmp_path, LANGUAGES, ["train", "valid", "test"])


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
