"""Captions of the grammar are read back as what was put into them; wrong ones are caught where they are wrong."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.generated.scene_captions import Named, captions, parse, scene_truth

# "top" is a word of the grammar's orders, and "oil" needs "an"
NAMES = ["top hat", "oil lamp", "cat", "polar bear", "unicorn"]
# On a diagonal, from top left to bottom right; each has nine times the area of the next.
BOXES = [(0, 0, 90, 90), (100, 100, 130, 130), (140, 140, 150, 150)]
SCENE = [["cat", "animal"], ["top hat", "garment"], ["dog", "animal"]]


def wrong(truth):
    """What is not as it should be."""
    pairs = {"named": "objects", "right": "mentioned", "true": "relations"}
    return {name for name, whole in pairs.items() if truth[name] != truth[whole]}


@st.composite
def scenes(draw):
    """Objects in cells of a grid of their own, so that their boxes are disjoint, with names."""
    count = draw(st.integers(1, 3))
    cells = draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=count, max_size=count, unique=True))
    names = draw(st.permutations(NAMES))[:count]
    sizes = draw(st.lists(st.integers(5, 20), min_size=count, max_size=count))
    boxes = [(20 * x, 20 * y, 20 * x + size, 20 * y + size) for (x, y), size in zip(cells, sizes, strict=True)]
    return [Named(name, box) for name, box in zip(names, boxes, strict=True)]


@given(things=scenes(), seed=st.integers(0, 1000))
def test_every_caption_of_the_grammar_is_grammatical_and_entirely_true(things, seed):
    boxes = [thing.box for thing in things]
    for caption in captions(things, 4, random.Random(seed)):
        reading = parse(caption.text)
        assert reading is not None
        names, statements = reading
        assert {*names} == {things[mention.thing].name for mention in caption.mentions}
        truth = scene_truth(caption.text, [[thing.name] for thing in things], boxes)
        assert truth["all_true"] == truth["grammatical"] == 1
        assert truth["mentioned"] == truth["right"] == truth["named"] == truth["objects"] == len(things)
        assert truth["true"] == truth["relations"] == len(statements)


@given(things=scenes(), other=scenes(), seed=st.integers(0, 1000))
def test_in_another_scene_its_statements_are_those_that_hold_there(things, other, seed):
    """The same words about boxes of another scene: each statement is judged on these."""
    count = min(len(things), len(other))
    things, boxes = things[:count], [thing.box for thing in other[:count]]
    for caption in captions(things, 3, random.Random(seed)):
        said, statements = parse(caption.text)
        names = [thing.name for thing in things]
        holding = [holds([boxes[names.index(said[part])] for part in parts]) for holds, parts in statements]
        truth = scene_truth(caption.text, [[name] for name in names], boxes)
        assert (truth["true"], truth["relations"]) == (sum(holding), len(holding))
        assert truth["all_true"] == all(holding)


@pytest.mark.parametrize(
    ("caption", "stated"),
    [
        ("there is a cat", 0),
        ("a cat and a top hat ; the cat is above the top hat", 1),
        ("there is a cat ; a top hat is to the right of it", 1),
        ("a cat is larger than a top hat", 1),
        ("a cat is above a top hat and to the left of a dog", 2),
        ("from top to bottom : a cat , a top hat and a dog", 1),
        ("a cat is to the left of a top hat ; it is larger than a dog", 2),
    ],
)
def test_statements_are_counted_and_hold(caption, stated):
    truth = scene_truth(caption, SCENE, BOXES)
    assert (truth["relations"], truth["true"], truth["all_true"]) == (stated, stated, 1)


@pytest.mark.parametrize(
    ("caption", "mistakes", "numbers"),
    [
        ("a cat is below a top hat", {"named", "true"}, {"relations": 1, "true": 0}),
        ("a top hat is larger than a cat", {"named", "true"}, {"relations": 1, "true": 0}),
        ("from top to bottom : a cat , a dog and a top hat", {"true"}, {"relations": 1, "true": 0}),
        ("a cat is above a top hat and below a dog", {"true"}, {"relations": 2, "true": 1}),
        ("a cat above a fish", {"named", "right", "true"}, {"mentioned": 2, "right": 1, "true": 0}),
        ("this is a fish", {"named", "right"}, {"mentioned": 1, "right": 0}),
    ],
)
def test_what_is_wrong_is_counted(caption, mistakes, numbers):
    truth = scene_truth(caption, SCENE, BOXES)
    assert wrong(truth) == mistakes
    assert truth.items() >= numbers.items()
    assert (truth["grammatical"], truth["all_true"]) == (1, 0)


def test_a_kind_stands_for_the_object_of_which_most_is_true():
    below = scene_truth("a top hat is above an animal", SCENE, BOXES)
    above = scene_truth("an animal is above a top hat", SCENE, BOXES)
    assert below["all_true"] == above["all_true"] == 1
    neither = scene_truth("a top hat is larger than an animal", SCENE[:2], BOXES)
    assert (neither["right"], neither["true"]) == (2, 0)


def test_two_names_are_not_of_one_object():
    truth = scene_truth("a cat above an animal", SCENE[:2], BOXES)
    assert (truth["mentioned"], truth["right"], truth["all_true"]) == (2, 1, 0)
    assert scene_truth("a cat above an animal", SCENE, BOXES)["all_true"] == 1


@pytest.mark.parametrize(
    ("caption", "mentioned", "right"),
    [
        ("", 0, 0),
        ("a", 0, 0),
        ("the cat", 0, 0),
        ("a cat is", 1, 1),
        ("an cat", 1, 1),
        ("a oil lamp", 1, 0),
        ("a cat above a cat", 1, 1),
        ("a cat a top hat", 2, 2),
        ("a cat above a top hat ; a fish", 3, 2),
        ("a cat and a top hat ; the top hat is below the cat", 2, 2),
        ("a cat is above <unk>", 1, 1),
        ("there is a cat  ; a top hat is below it", 2, 2),
        ("A cat", 0, 0),
    ],
)
def test_of_what_the_grammar_does_not_give_only_names_count(caption, mentioned, right):
    truth = scene_truth(caption, SCENE, BOXES)
    assert parse(caption) is None
    assert (truth["mentioned"], truth["right"]) == (mentioned, right)
    assert truth["relations"] == truth["grammatical"] == truth["all_true"] == 0
