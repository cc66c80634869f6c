"""Captions of scenes are true, and read back as what was put into them; wrong ones are caught where they are wrong."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.generated import scene_captions
from tests.refused import assert_refused

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
def scenes(draw, least=1):
    """Objects in cells of a grid of their own, so that their boxes are disjoint, with names."""
    count = draw(st.integers(least, 3))
    cells = draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=count, max_size=count, unique=True))
    names = draw(st.permutations(NAMES))[:count]
    side = st.integers(1, 20)
    boxes = [(20 * x, 20 * y, 20 * x + draw(side), 20 * y + draw(side)) for x, y in cells]
    return [scene_captions.Named(name, box) for name, box in zip(names, boxes, strict=True)]


@given(things=scenes(), seed=st.integers(0, 10**6))
def test_every_caption_is_grammatical_and_entirely_true_and_its_mentions_are_where_the_names_are(things, seed):
    boxes = [thing.box for thing in things]
    made = scene_captions.captions(things, 5, random.Random(seed))
    assert len({caption.text for caption in made}) == 5
    for caption in made:
        names, statements = scene_captions.parse(caption.text)
        assert {*names} == {thing.name for thing in things}
        truth = scene_captions.scene_truth(caption.text, [[thing.name] for thing in things], boxes)
        assert truth["all_true"] == truth["grammatical"] == 1
        assert truth["mentioned"] == truth["right"] == truth["named"] == truth["objects"] == len(things)
        assert truth["true"] == truth["relations"] == len(statements)
        words, seen = caption.text.split(), set()
        for start, end, thing in caption.mentions:
            assert " ".join(words[start:end]) == things[thing].name
            assert (words[start - 1] == "the") == (thing in seen)
            seen.add(thing)
        assert len(caption.mentions) == sum(caption.text.count(name) for name in names)


@given(things=scenes(), other=scenes(), seed=st.integers(0, 1000))
def test_in_another_scene_its_statements_are_those_that_hold_there(things, other, seed):
    """The same words about boxes of another scene: each statement is judged on these."""
    count = min(len(things), len(other))
    things, boxes = things[:count], [thing.box for thing in other[:count]]
    for caption in scene_captions.captions(things, 3, random.Random(seed)):
        said, statements = scene_captions.parse(caption.text)
        names = [thing.name for thing in things]
        holding = [true([boxes[names.index(said[part])] for part in parts]) for true, parts in statements]
        truth = scene_captions.scene_truth(caption.text, [[name] for name in names], boxes)
        assert (truth["true"], truth["relations"]) == (sum(holding), len(holding))
        assert truth["all_true"] == all(holding)


def test_touching_boxes_are_beside_each_other_and_overlapping_ones_are_not():
    assert scene_captions.holds("left", (0, 0, 10, 10), (10, 0, 20, 10))
    assert scene_captions.holds("right", (10, 0, 20, 10), (0, 0, 10, 10))
    assert not scene_captions.holds("left", (0, 0, 11, 10), (10, 0, 20, 10))
    assert scene_captions.holds("above", (0, 0, 10, 10), (5, 10, 20, 20))
    assert scene_captions.holds("below", (5, 10, 20, 20), (0, 0, 10, 10))
    assert scene_captions.larger((0, 0, 10, 20), (0, 0, 10, 10))
    assert not scene_captions.larger((0, 0, 10, 19), (0, 0, 10, 10))


def test_an_object_alone_is_told_in_six_ways_and_more_are_refused():
    alone = [scene_captions.Named("owl", (0, 0, 5, 5))]
    everything = scene_captions.captions(alone, 6, random.Random(0))
    ways = ("", "there is ", "a picture of ", "this is ", "here is ", "one can see ")
    assert {caption.text for caption in everything} == {f"{way}an owl" for way in ways}
    assert scene_captions.Caption("an owl", (scene_captions.Mention(1, 2, 0),)) in everything
    assert_refused("has not 7 different captions for 1 objects;", scene_captions.captions, alone, 7, random.Random(0))


@pytest.mark.parametrize("said", ["an ant", "a unicorn", "a ewe", "a red apple", "an ox"])
def test_articles_follow_the_sound(said):
    assert scene_captions.with_article(said.partition(" ")[2]) == said


# The cat is left of the top hat and below it; the dog is right of the cat alone, below the hat alone, and small.
AROUND = [(0, 30, 10, 50), (20, 0, 42, 5), (35, 28, 45, 34)]


# For each statement of each template there is a row that another pair of objects would make wrong.
@pytest.mark.parametrize(("caption", "boxes", "stated"), [
    ("there is a cat", AROUND, 0),
    ("a cat below a top hat", AROUND, 1),
    ("a cat is to the left of a top hat", AROUND, 1),
    ("there is a cat to the left of a top hat", AROUND, 1),
    ("there is a cat ; a top hat is to the right of it", AROUND, 1),
    ("a cat and a top hat ; the cat is below the top hat", AROUND, 1),
    ("below a top hat there is a cat", AROUND, 1),
    ("a cat is larger than a dog", AROUND, 1),
    ("a cat below a top hat ; a dog is to the right of the cat", AROUND, 2),
    ("a cat to the left of a dog ; a top hat is above the cat", AROUND, 2),
    ("there is a cat ; a top hat is above it ; a dog is below the top hat", AROUND, 2),
    ("there is a cat ; a dog is to the right of it ; a top hat is above the dog", AROUND, 2),
    ("a cat is below a top hat and to the left of a dog", AROUND, 2),
    ("a cat is to the left of a dog and below a top hat", AROUND, 2),
    ("below a top hat there is a cat ; a dog is below the top hat", AROUND, 2),
    ("to the left of a dog there is a cat ; a top hat is above the dog", AROUND, 2),
    ("a cat , a top hat and a dog ; the cat is to the left of the dog", AROUND, 1),
    ("a cat , a dog and a top hat ; the cat is below the top hat", AROUND, 1),
    ("from top to bottom : a cat , a top hat and a dog", BOXES, 1),
    ("a cat is to the left of a top hat ; it is larger than a dog", AROUND, 2),
    ("a cat is below a top hat ; it is larger than a dog", AROUND, 2),
])  # fmt: skip
def test_statements_are_counted_and_hold(caption, boxes, stated):
    truth = scene_captions.scene_truth(caption, SCENE, boxes)
    assert (truth["relations"], truth["true"], truth["all_true"]) == (stated, stated, 1)


@pytest.mark.parametrize(("caption", "mistakes", "numbers"), [
    ("a cat is below a top hat", {"named", "true"}, {"relations": 1, "true": 0}),
    ("a top hat is larger than a cat", {"named", "true"}, {"relations": 1, "true": 0}),
    ("from top to bottom : a cat , a dog and a top hat", {"true"}, {"relations": 1, "true": 0}),
    ("a cat is above a top hat and below a dog", {"true"}, {"relations": 2, "true": 1}),
    ("a cat above a fish", {"named", "right", "true"}, {"mentioned": 2, "right": 1, "true": 0}),
    ("this is a fish", {"named", "right"}, {"mentioned": 1, "right": 0}),
])  # fmt: skip
def test_what_is_wrong_is_counted(caption, mistakes, numbers):
    truth = scene_captions.scene_truth(caption, SCENE, BOXES)
    assert wrong(truth) == mistakes
    assert truth.items() >= numbers.items()
    assert (truth["grammatical"], truth["all_true"]) == (1, 0)


def test_a_kind_stands_for_the_object_of_which_most_is_true():
    below = scene_captions.scene_truth("a top hat is above an animal", SCENE, BOXES)
    above = scene_captions.scene_truth("an animal is above a top hat", SCENE, BOXES)
    assert below["all_true"] == above["all_true"] == 1
    neither = scene_captions.scene_truth("a top hat is larger than an animal", SCENE[:2], BOXES)
    assert (neither["right"], neither["true"]) == (2, 0)


def test_two_names_are_not_of_one_object():
    truth = scene_captions.scene_truth("a cat above an animal", SCENE[:2], BOXES)
    assert (truth["mentioned"], truth["right"], truth["all_true"]) == (2, 1, 0)
    assert scene_captions.scene_truth("a cat above an animal", SCENE, BOXES)["all_true"] == 1


@pytest.mark.parametrize(("caption", "mentioned", "right"), [
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
])  # fmt: skip
def test_of_what_the_grammar_does_not_give_only_names_count(caption, mentioned, right):
    truth = scene_captions.scene_truth(caption, SCENE, BOXES)
    assert scene_captions.parse(caption) is None
    assert (truth["mentioned"], truth["right"]) == (mentioned, right)
    assert truth["relations"] == truth["grammatical"] == truth["all_true"] == 0
