"""Hand-made archives in the format of Hutto and Gilbert's ratings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_archives import make_tar

from shared.data.readers import read
from shared.data.readers.rated import classify
from shared.errors import ReplicationError

THRESHOLDS = (-1.6, -0.5, 0.5, 1.6)
OPTIONS = {
    "archive": "ratings.tar",
    "sets": {"film": "x/film.txt", "shop": "x/shop.txt"},
    "classes": ["worst", "bad", "neutral", "good", "best"],
    "thresholds": list(THRESHOLDS),
    "valid_percent": 10,
    "test_percent": 20,
}
LANGUAGES = ["text", "label"]


@pytest.fixture
def raw(tmp_path):
    film = "".join(f"{i}\t{i % 9 - 4}\tfilm {i} &amp; café\r\n" for i in range(1, 201))
    shop = "\r\n".join(f"{i}_{j}\t{j / 10 - 1}\tshop {i} {j}" for i in range(1, 101) for j in range(1, 4))
    contents = {"x/film.txt": film.encode(), "x/shop.txt": shop.encode(), "x/paper.pdf": b"\xff"}
    make_tar(tmp_path / "ratings.tar", contents, "w")
    return tmp_path


def test_sentences_have_a_key_a_class_and_the_split_of_their_document(raw):
    corpus = read("rated", raw, LANGUAGES, OPTIONS)
    homes, found = {}, {}
    for split, segments in corpus.items():
        for segment in segments:
            assert homes.setdefault(segment.key.partition(":")[0], split) == split
            found[segment.key] = segment.texts
    assert len(found) == 500
    assert found["film/1:1"] == ("film 1 & café", "worst")
    assert found["film/8:1"] == ("film 8 & café", "best")
    assert found["shop/7:2"] == ("shop 7 2", "bad")
    assert set(homes.values()) == {"train", "valid", "test"}


@pytest.mark.parametrize(
    ("rating", "expected"),
    [(-4, 0), (-1.61, 0), (-1.6, 1), (-0.51, 1), (-0.5, 2), (0, 2), (0.5, 2), (0.51, 3), (1.6, 3), (1.61, 4)],
)
def test_a_rating_at_a_threshold_belongs_to_the_class_nearer_to_zero(rating, expected):
    assert classify(rating, THRESHOLDS) == expected


@given(st.floats(-4, 4))
def test_opposite_ratings_are_in_opposite_classes(rating):
    assert classify(rating, THRESHOLDS) + classify(-rating, THRESHOLDS) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thresholds": [0.5, -0.5, 1, 2]}, "'thresholds' must ascend"),
        ({"classes": ["bad", "good"]}, "'classes' must be one more than 'thresholds'"),
        ({"sets": {"film": "x/none.txt"}}, r"ratings\.tar cannot be read .*x/none\.txt"),
        ({"sets": {"film": "x/paper.pdf"}}, r"ratings\.tar cannot be read"),
        ({"sets": {"film": "x"}}, r"ratings\.tar cannot be read"),
        ({"set": {}}, "did you mean 'sets'"),
    ],
)
def test_wrong_options_and_another_archive_are_refused(raw, changes, message):
    with pytest.raises(ReplicationError, match=message):
        read("rated", raw, LANGUAGES, OPTIONS | changes)


def test_a_damaged_archive_is_named_and_the_languages_are_fixed(raw):
    with pytest.raises(ReplicationError, match="has the languages text and label, in this order"):
        read("rated", raw, ["label", "text"], OPTIONS)
    (raw / "ratings.tar").write_bytes(b"no tar" * 200)
    with pytest.raises(ReplicationError, match=r"ratings\.tar cannot be read"):
        read("rated", raw, LANGUAGES, OPTIONS)
