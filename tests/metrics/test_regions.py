"""Pointing metrics by hand, and at the ends of each scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics.regions import contrast_statistics, pointing_statistics

grids = st.sampled_from([(1, 1), (2, 3), (3, 2), (4, 4), (4, 1)])
ends = st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] < pair[1])
boxes = st.tuples(ends, ends).map(lambda pairs: np.array(pairs).T.ravel() / 24)


@given(box=boxes, grid=grids)
def test_even_attention_is_right_by_chance(box, grid):
    rows, columns = grid
    even = np.full((1, rows * columns), 1 / (rows * columns))
    found = pointing_statistics(even, box, rows, columns)
    left, top, right, bottom = box
    assert found["area"] == pytest.approx((right - left) * (bottom - top))
    assert found["mass"] == pytest.approx(found["area"])
    assert found["hits"] == pytest.approx(found["centres"])
    assert found["words"] == 1


def test_a_worked_example():
    # Places 0 1 / 2 3; the box is the left half of the image and a quarter of the right one.
    box = (0.0, 0.0, 0.625, 1.0)
    weights = [[0.1, 0.2, 0.5, 0.2], [0.0, 0.0, 0.4, 0.6]]
    found = pointing_statistics(weights, [box, box], 2, 2)
    assert found == pytest.approx(
        {
            "mass": (0.6 + 0.4 * 0.25) + (0.4 + 0.6 * 0.25),
            "area": 2 * 0.625,
            "hits": 1 + 0,
            "centres": 2 * 0.5,
            "words": 2,
        }
    )


def test_the_sums_of_two_images_are_those_of_both():
    rng = np.random.default_rng(0)
    weights, boxes = rng.dirichlet(np.ones(6), size=5), [(0.1 * i, 0.2, 0.5, 0.9) for i in range(5)]
    parts = [pointing_statistics(weights[i:j], boxes[i:j], 2, 3) for i, j in ((0, 2), (2, 5))]
    whole = pointing_statistics(weights, boxes, 2, 3)
    assert whole == pytest.approx({name: sum(part[name] for part in parts) for name in whole})


def test_what_is_no_box_is_refused():
    with pytest.raises(ValueError, match="a box must have an area and lie inside"):
        pointing_statistics(np.full((1, 4), 0.25), [(0.2, 0.1, 0.2, 0.5)], 2, 2)


def test_weights_of_another_grid_are_refused():
    with pytest.raises(ValueError, match="are not of 1 boxes and 2 x 3 places"):
        pointing_statistics([[0.5, 0.5]], [(0, 0, 1, 1)], 2, 3)


HALVES = [(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5)]  # the left half of the image, and a quarter right of it


def test_what_is_named_is_compared_with_the_other_things():
    # Places 0 1 / 2 3: the left half has 0 and 2, the other thing 1.
    weights = [[0.1, 0.2, 0.5, 0.2], [0.1, 0.6, 0.1, 0.2]]
    found = contrast_statistics(weights, [0, 1], HALVES, 2, 2)
    assert found == pytest.approx({"named": 0.6 + 0.6, "others": 0.2 + 0.2, "compared": 2})
    three = contrast_statistics(weights, [0, 1], [*HALVES, (0.5, 0.5, 1.0, 1.0)], 2, 2)
    assert three == pytest.approx({"named": 0.6 + 0.6, "others": (0.2 + 0.2) / 2 + (0.2 + 0.2) / 2, "compared": 2})


def test_to_look_at_any_thing_is_not_to_look_at_the_one_named():
    everywhere = [[0.0, 0.5, 0.5, 0.0]] * 2
    found = contrast_statistics(everywhere, [0, 1], HALVES, 2, 2)
    assert found["named"] == found["others"] == 1.0


def test_where_there_is_one_thing_there_is_nothing_to_compare():
    assert {*contrast_statistics([[1.0, 0.0, 0.0, 0.0]], [0], HALVES[:1], 2, 2).values()} == {0}
    assert {*contrast_statistics(np.zeros((0, 4)), [], HALVES, 2, 2).values()} == {0}
