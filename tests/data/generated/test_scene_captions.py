"""Captions of scenes, read by a reader that shares nothing with the grammar."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data.generated.scene_captions import Caption, Mention, Named, captions, holds, larger, with_article
from shared.errors import ReplicationError

NAMES = ["red apple", "owl", "unicorn"]
OPENINGS = r"(?:there is|here is|this is|one can see|a picture of) "
SAYS = {"to the left of": "left", "to the right of": "right", "above": "above", "below": "below"}
PLACE = rf"({'|'.join(SAYS)})"


def read(text, names):
    """What a caption says of its objects as (relation, subject, object), and the words that name each."""
    words, nouns, spans = text.split(), [], []
    i = 0
    while i < len(words):
        for number, name in enumerate(names):
            if words[i + 1 : i + 1 + len(name.split())] == name.split() and words[i] in ("a", "an", "the"):
                assert words[i] == "the" or words[i] == ("a" if name[0] not in "aeo" else "an")
                assert (words[i] == "the") == (number in {span[2] for span in spans})
                spans.append((i + 1, i + 1 + len(name.split()), number))
                nouns.append(str(number))
                i += len(name.split())
                break
        else:
            nouns.append(words[i])
        i += 1
    first = str(spans[0][2])
    clauses = [first if word == "it" else word for word in nouns]
    return [claim for clause in " ".join(clauses).split(" ; ") for claim in claims(clause)], spans


def claims(clause):
    """The claims of one clause in which numbers stand for objects."""
    said = re.sub(f"^{OPENINGS}", "", clause)
    if match := re.fullmatch(r"from (left to right|top to bottom) : (\d) , (\d) and (\d)", said):
        way, *order = match.groups()
        relation = "left" if way == "left to right" else "above"
        return [(relation, order[0], order[1]), (relation, order[1], order[2])]
    if match := re.fullmatch(rf"{PLACE} (\d) there is (\d)", said):
        way, anchor, subject = match.groups()
        return [(SAYS[way], subject, anchor)]
    if match := re.fullmatch(r"(\d) is larger than (\d)", said):
        return [("larger", *match.groups())]
    if match := re.fullmatch(rf"(\d) (?:is )?{PLACE} (\d)(?: and {PLACE} (\d))?", said):
        subject, way, one, other_way, other = match.groups()
        found = [(SAYS[way], subject, one)]
        return [*found, (SAYS[other_way], subject, other)] if other else found
    assert re.fullmatch(r"\d(?: and \d| , \d and \d)?", said), clause
    return []


def true(relation, a, b):
    """Judged on the sets of columns and rows that the boxes take."""
    if relation == "larger":
        return (a[2] - a[0]) * (a[3] - a[1]) >= 2 * (b[2] - b[0]) * (b[3] - b[1])
    axis = 0 if relation in ("left", "right") else 1
    one, other = range(a[axis], a[axis + 2]), range(b[axis], b[axis + 2])
    return max(one) < min(other) if relation in ("left", "above") else min(one) > max(other)


@st.composite
def disjoint(draw):
    """One to three objects in cells of a coarse grid, so that their boxes cannot overlap."""
    cells = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3, unique=True))
    sides = st.integers(1, 60)
    boxes = [(70 * x, 70 * y, 70 * x + draw(sides), 70 * y + draw(sides)) for x, y in cells]
    return [Named(name, box) for name, box in zip(NAMES, boxes, strict=False)]


@given(disjoint(), st.integers(0, 10**6))
def test_what_captions_say_is_true_and_mentions_are_where_the_names_are(things, seed):
    made = captions(things, 5, random.Random(seed))
    assert len({caption.text for caption in made}) == 5
    for caption in made:
        said, spans = read(caption.text, [thing.name for thing in things])
        assert list(caption.mentions) == spans
        assert {mention.thing for mention in caption.mentions} == set(range(len(things)))
        assert caption.text == caption.text.lower()
        for relation, subject, other in said:
            assert true(relation, things[int(subject)].box, things[int(other)].box)


@given(disjoint().filter(lambda things: len(things) == 3), st.integers(0, 10**6))
def test_objects_play_their_parts_from_left_to_right(things, seed):
    middles = [thing.box[0] + thing.box[2] for thing in things]
    for caption in captions(things, 5, random.Random(seed)):
        if caption.text.startswith(("a ", "an ", "from ")):  # the other templates begin with the second
            order = [middles[mention.thing] for mention in caption.mentions[:2]]
            assert order == sorted(order)


def test_every_relation_is_said_and_both_of_a_diagonal_pair():
    things = [Named("owl", (0, 0, 40, 40)), Named("red apple", (50, 60, 60, 70))]
    said = set()
    for seed in range(50):
        for caption in captions(things, 5, random.Random(seed)):
            said.update(read(caption.text, [thing.name for thing in things])[0])
    assert {" ".join(claim) for claim in said} == {"left 0 1", "above 0 1", "right 1 0", "below 1 0", "larger 0 1"}


def test_touching_boxes_are_beside_each_other_and_overlapping_ones_are_not():
    assert holds("left", (0, 0, 10, 10), (10, 0, 20, 10))
    assert holds("right", (10, 0, 20, 10), (0, 0, 10, 10))
    assert not holds("left", (0, 0, 11, 10), (10, 0, 20, 10))
    assert holds("above", (0, 0, 10, 10), (5, 10, 20, 20))
    assert holds("below", (5, 10, 20, 20), (0, 0, 10, 10))
    assert larger((0, 0, 10, 20), (0, 0, 10, 10))
    assert not larger((0, 0, 10, 19), (0, 0, 10, 10))


def test_an_object_alone_is_told_in_six_ways_and_more_are_refused():
    alone = [Named("owl", (0, 0, 5, 5))]
    everything = captions(alone, 6, random.Random(0))
    ways = ("", "there is ", "a picture of ", "this is ", "here is ", "one can see ")
    assert {caption.text for caption in everything} == {f"{way}an owl" for way in ways}
    assert Caption("an owl", (Mention(1, 2, 0),)) in everything
    with pytest.raises(ReplicationError, match="has not 7 different captions for 1 objects; ask for fewer"):
        captions(alone, 7, random.Random(0))


@pytest.mark.parametrize("said", ["an ant", "a unicorn", "a ewe", "a red apple", "an ox"])
def test_articles_follow_the_sound(said):
    assert with_article(said.partition(" ")[2]) == said
