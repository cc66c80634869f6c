"""Pointing metrics against counting pixels, and at the ends of each scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics.regions import centres_inside, coverage, pointing_statistics

SIDE = 24  # pixels; so many that grids of 2, 3 and 4 places a side fall on them
sides = st.integers(0, SIDE)
pixel_boxes = st.tuples(sides, sides, sides, sides).map(
    lambda ends: (min(ends[0], ends[2]), min(ends[1], ends[3]), max(ends[0], ends[2]), max(ends[1], ends[3]))
)
boxes_with_area = pixel_boxes.filter(lambda box: box[0] < box[2] and box[1] < box[3])
grids = st.sampled_from([(1, 1), (2, 3), (3, 2), (4, 4), (4, 1)])


def counted(box, rows, columns):
    """Share of the pixels of each place that are in the box."""
    image = np.zeros((SIDE, SIDE))
    left, top, right, bottom = box
    image[top:bottom, left:right] = 1
    tall, wide = SIDE // rows, SIDE // columns
    return [
        image[r * tall : (r + 1) * tall, c * wide : (c + 1) * wide].mean()
        for r in range(rows)
        for c in range(columns)
    ]


def shares(*boxes):
    return np.array(boxes) / SIDE


@given(boxes=st.lists(boxes_with_area, max_size=3), grid=grids)
def test_coverage_is_that_of_the_pixels(boxes, grid):
    rows, columns = grid
    found = coverage(shares(*boxes), rows, columns)
    assert found.shape == (len(boxes), rows * columns)
    for row, box in zip(found, boxes, strict=True):
        assert row == pytest.approx(counted(box, rows, columns))


@given(box=boxes_with_area, grid=grids)
def test_a_centre_is_inside_where_its_pixels_are(box, grid):
    rows, columns = grid
    (left, top, right, bottom), inside = box, centres_inside(shares(box), rows, columns)[0]
    for place, found in enumerate(inside):
        y, x = (place // columns + 0.5) * SIDE / rows, (place % columns + 0.5) * SIDE / columns
        assert found == (left <= x <= right and top <= y <= bottom)


@given(box=boxes_with_area, grid=grids)
def test_even_attention_is_right_by_chance(box, grid):
    rows, columns = grid
    even = np.full((1, rows * columns), 1 / (rows * columns))
    found = pointing_statistics(even, shares(box), rows, columns)
    left, top, right, bottom = shares(box)[0]
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


def test_places_attended_to_equally_share_the_hit():
    found = pointing_statistics([[0.4, 0.4, 0.1, 0.1]], [(0.0, 0.0, 0.5, 0.5)], 2, 2)
    assert found["hits"] == 0.5


def test_the_sums_of_two_images_are_those_of_both():
    rng = np.random.default_rng(0)
    weights, boxes = rng.dirichlet(np.ones(6), size=5), [(0.1 * i, 0.2, 0.5, 0.9) for i in range(5)]
    parts = [pointing_statistics(weights[i:j], boxes[i:j], 2, 3) for i, j in ((0, 2), (2, 5))]
    whole = pointing_statistics(weights, boxes, 2, 3)
    assert whole == pytest.approx({name: sum(part[name] for part in parts) for name in whole})


def test_an_image_without_named_objects_adds_nothing():
    assert {*pointing_statistics(np.zeros((0, 6)), [], 2, 3).values()} == {0}


@pytest.mark.parametrize("box", [(0.2, 0.1, 0.2, 0.5), (0.1, 0.6, 0.9, 0.5), (0, 0, 24, 24), (-0.1, 0, 1, 1)])
def test_what_is_no_box_within_the_image_is_refused(box):
    with pytest.raises(ValueError, match="a box must have an area and lie inside"):
        coverage([box], 2, 2)


def test_weights_of_another_grid_are_refused():
    with pytest.raises(ValueError, match="are not of 1 boxes and 2 x 3 places"):
        pointing_statistics([[0.5, 0.5]], [(0, 0, 1, 1)], 2, 3)
