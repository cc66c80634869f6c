"""The generated sequences to be copied."""

import itertools
import json
from collections import Counter

import pytest

from shared.config import build, load_yaml
from shared.data.fetch import fetch
from shared.data.generated.sequences import FILE, Copy


@pytest.fixture(scope="module")
def shipped(pytestconfig):
    values = load_yaml(pytestconfig.rootpath / "data/generated_copy.yaml")["sources"][0]["parameters"]
    return build(Copy, values, where="card")


def test_the_shipped_card_makes_the_file_that_it_says(pytestconfig, tmp_path, shipped):
    card = (pytestconfig.rootpath / "data/generated_copy.yaml").read_text()
    (tmp_path / "generated_copy.yaml").write_text(card)
    assert [*fetch("generated_copy", root=tmp_path).files] == [FILE]  # it compares the hash
    assert json.loads((tmp_path / "generated_copy" / FILE).read_text()) == shipped.model_dump()


def test_the_same_sequences_are_drawn_everywhere(shipped):
    drawn = [4, 8, 10, 2, 10]
    assert list(shipped.draw("test", 0, 5, ())) == drawn
    longer = shipped.draw("test", 0, 9, ())
    assert list(longer[:5]) == drawn
    others = [
        shipped.draw("valid", 0, 5, ()),
        shipped.draw("test", 1, 5, ()),
        Copy(seed=1, symbols=10).draw("test", 0, 5, ()),
    ]
    assert len({*map(bytes, others), longer[:5]}) == 4


def test_symbols_are_uniform_and_independent():
    drawn = [Copy(seed=3, symbols=4).draw("train", number, 20, ()) for number in range(2000)]
    # Five standard errors of a share of 1/4 of 40,000, and of 1/16 of 38,000.
    assert shares(x for word in drawn for x in word) == pytest.approx(dict.fromkeys(range(1, 5), 1 / 4), abs=0.011)
    pairs = shares(pair for word in drawn for pair in itertools.pairwise(word))
    assert pairs == pytest.approx({(a, b): 1 / 16 for a in range(1, 5) for b in range(1, 5)}, abs=0.0063)


def shares(events):
    counts = Counter(events)
    return {event: count / counts.total() for event, count in counts.items()}


def test_what_is_excluded_is_drawn_anew():
    parameters = Copy(seed=0, symbols=2)
    plain = {parameters.draw("train", number, 3, ()) for number in range(100)}
    assert len(plain) == 8
    excluded = {*plain} - {bytes([1, 2, 1])}
    assert {parameters.draw("train", number, 3, excluded) for number in range(20)} == {bytes([1, 2, 1])}
