"""The generated sequences to be copied."""

import pytest

from shared.config import build, load_yaml
from shared.data.generated.sequences import Copy


@pytest.fixture(scope="module")
def shipped(pytestconfig):
    values = load_yaml(pytestconfig.rootpath / "data/generated_copy.yaml")["sources"][0]["parameters"]
    return build(Copy, values, where="card")


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


def test_what_is_excluded_is_drawn_anew():
    parameters = Copy(seed=0, symbols=2)
    plain = {parameters.draw("train", number, 3, ()) for number in range(100)}
    assert len(plain) == 8
    excluded = {*plain} - {bytes([1, 2, 1])}
    assert {parameters.draw("train", number, 3, excluded) for number in range(20)} == {bytes([1, 2, 1])}
