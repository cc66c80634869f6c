"""Where models look: pointing metrics and rows of an attention, by hand and at the ends of each scale."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.attention.structured import redundancy_penalty
from shared.metrics.attention_rows import evidence, focus, importance, ranks, redundancy
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
    expected = {"mass": (0.6 + 0.4 * 0.25) + (0.4 + 0.6 * 0.25), "area": 2 * 0.625, "hits": 1 + 0, "centres": 2 * 0.5}
    assert pointing_statistics(weights, [box, box], 2, 2) == pytest.approx(expected | {"words": 2})


def test_the_sums_of_two_images_are_those_of_both():
    rng = np.random.default_rng(0)
    weights, boxes = rng.dirichlet(np.ones(6), size=5), [(0.1 * i, 0.2, 0.5, 0.9) for i in range(5)]
    parts = [pointing_statistics(weights[i:j], boxes[i:j], 2, 3) for i, j in ((0, 2), (2, 5))]
    whole = pointing_statistics(weights, boxes, 2, 3)
    assert whole == pytest.approx({name: sum(part[name] for part in parts) for name in whole})


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


def attention(seed, texts=3, rows=4, words=7, padding=2):
    """Random rows of weights, with padding behind the words of the last text."""
    torch.manual_seed(seed)
    scores = 3 * torch.randn(texts, rows, words)
    scores[-1, :, words - padding :] = -math.inf
    return scores.softmax(-1)


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_redundancy_is_the_mean_cosine_of_every_two_rows(seed, rows):
    weights = attention(seed, rows=rows)
    for text, found in zip(weights.double().tolist(), redundancy(weights).tolist(), strict=True):
        pairs = [cosine(text[i], text[j]) for i in range(rows) for j in range(rows) if i != j]
        assert found == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@given(st.integers(0, 10**6))
def test_focus_and_penalty_are_of_products_of_rows(seed):
    weights = attention(seed)
    found = zip(focus(weights).tolist(), redundancy_penalty(weights.double()).tolist(), strict=True)
    for text, (of_focus, of_penalty) in zip(weights.double().tolist(), found, strict=True):
        products = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in text] for x in text]
        assert of_focus == pytest.approx(sum(products[i][i] for i in range(4)) / 4)
        squares = [(products[i][j] - (i == j)) ** 2 for i in range(4) for j in range(4)]
        assert of_penalty == pytest.approx(sum(squares))


def test_rows_at_the_ends_of_each_scale():
    apart, alike, even = torch.eye(3)[None], torch.eye(3)[[0, 0, 0]][None], torch.full((1, 3, 3), 1 / 3)
    assert [redundancy(rows).item() for rows in (apart, alike, even)] == pytest.approx([0, 1, 1])
    assert [focus(rows).item() for rows in (apart, alike, even)] == pytest.approx([1, 1, 1 / 3])
    assert redundancy(apart).item() == 0  # and not a little less


def test_a_single_row_has_no_redundancy():
    assert redundancy(torch.tensor([[[0.5, 0.5]]])).isnan().all()


def test_padding_changes_nothing():
    weights = attention(0)
    longer = torch.nn.functional.pad(weights, (0, 5))
    for of in (redundancy, focus):
        torch.testing.assert_close(of(longer), of(weights), rtol=1e-12, atol=0)
    torch.testing.assert_close(importance(longer)[:, :7], importance(weights), rtol=0, atol=0)


def test_sums_are_of_doubles():
    weights = torch.full((1, 2, 3000), 1 / 3000)
    assert {of(weights).dtype for of in (redundancy, focus, importance)} == {torch.float64}


@given(st.data())
def test_ranks_and_evidence_equal_those_of_each_text_alone(data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    size = sum(lengths)
    owners = data.draw(st.permutations([i for i, n in enumerate(lengths) for _ in range(n)]).map(np.array))
    scores = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.7]), min_size=size, max_size=size)))
    gold = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    placed, found = ranks(scores, owners), evidence(scores, owners, gold)
    for text, length in enumerate(lengths):
        words = np.flatnonzero(owners == text).tolist()
        order = sorted(words, key=lambda word: -scores[word])
        assert [placed[word] for word in order] == list(range(length))
        wanted = [word for word in words if gold[word]]
        expected = {
            "mass": sum(scores[word] for word in wanted), "words": len(wanted), "length": length,
            "found": len(set(wanted) & set(order[: len(wanted)])),
        }  # fmt: skip
        assert {name: values[text] for name, values in found.items()} == pytest.approx(expected)
