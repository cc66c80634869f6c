"""Boxes on a grid of places against counting pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.vision.features import box_shares, centres_inside, coverage

SIDE = 24  # pixels; so many that grids of 2, 3 and 4 places a side fall on them
sides = st.integers(0, SIDE)
pixel_boxes = st.tuples(sides, sides, sides, sides).map(
    lambda ends: (min(ends[0], ends[2]), min(ends[1], ends[3]), max(ends[0], ends[2]), max(ends[1], ends[3]))
)
boxes_with_area = pixel_boxes.filter(lambda box: box[0] < box[2] and box[1] < box[3])
grids = st.sampled_from([(1, 1), (2, 3), (3, 2), (4, 4), (4, 1)])


def pixels_inside(box, rows, columns):
    """How many pixels of each place are in the box."""
    image = np.zeros((SIDE, SIDE))
    left, top, right, bottom = box
    image[top:bottom, left:right] = 1
    tall, wide = SIDE // rows, SIDE // columns
    return np.array([
        image[r * tall : (r + 1) * tall, c * wide : (c + 1) * wide].sum()
        for r in range(rows)
        for c in range(columns)
    ])  # fmt: skip


def shares(*boxes):
    return np.array(boxes) / SIDE


@given(boxes=st.lists(boxes_with_area, max_size=3), grid=grids)
def test_coverage_and_shares_are_those_of_the_pixels(boxes, grid):
    rows, columns = grid
    covered, split = coverage(shares(*boxes), *grid), box_shares(shares(*boxes), *grid)
    assert covered.shape == split.shape == (len(boxes), rows * columns)
    for box, of_places, of_box in zip(boxes, covered, split, strict=True):
        pixels = pixels_inside(box, rows, columns)
        assert of_places == pytest.approx(pixels * rows * columns / SIDE**2)
        assert of_box == pytest.approx(pixels / pixels.sum())


@given(box=boxes_with_area, grid=grids)
def test_a_centre_is_inside_where_its_pixels_are(box, grid):
    rows, columns = grid
    (left, top, right, bottom), inside = box, centres_inside(shares(box), rows, columns)[0]
    for place, found in enumerate(inside):
        y, x = (place // columns + 0.5) * SIDE / rows, (place % columns + 0.5) * SIDE / columns
        assert found == (left <= x <= right and top <= y <= bottom)


@pytest.mark.parametrize("box", [(0.2, 0.1, 0.2, 0.5), (0.1, 0.6, 0.9, 0.5), (0, 0, 24, 24), (-0.1, 0, 1, 1)])
@pytest.mark.parametrize("measure", [coverage, box_shares, centres_inside])
def test_what_is_no_box_within_the_image_is_refused(measure, box):
    with pytest.raises(ValueError, match="a box must have an area and lie inside"):
        measure([box], 2, 2)
