"""Scenes of hand-made pictures."""

import itertools
import random
import shutil
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shared.data.generated import scene_captions, scenes
from shared.data.generated.scenes import LANGUAGES, SIDE, Placed, Scene, SceneSplit, draw, extent, rasterise
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError
from tests.inputs.raw_data import SVG, write_scenes
from tests.refused import assert_refused, sentence_of

SPLITS = ("train", "valid", "test", "test_combinations", "test_pictures")
# Unicode's group to names in its order; "green apple" and "house cat" share a word with one chosen before.
GROUPS = {"mammal": ["cat", "house cat", "grapes", "polar bear", "ox", "walrus", "elk", "lynx", "yak", "emu"],
          "hand": ["hammer", "grass", "saw", "two word name", "T-Rex", "tool box", "awl", "pick"],
          "fruit": ["red apple", "green apple", "pear", "peach", "fig", "lime", "oil"], "flag": ["flag"]}  # fmt: skip
CHOSEN = {"animal": ["cat", "polar bear", "ox", "walrus", "elk", "lynx", "yak", "emu"],
          "tool": ["hammer", "grass", "saw", "awl", "pick"],
          "fruit": ["red apple", "pear", "peach", "fig", "lime"]}  # fmt: skip
OPTIONS = {
    "seed": 3, "kinds": {"animal": ["mammal"], "tool": ["hand"], "fruit": ["fruit"]}, "left_out": ["oil"],
    "held_out_percent": 20, "numbers": [2, 4, 4], "combinations": 12, "sizes": [48, 64, 96], "captions": 5,
    "scenes": {"train": 30, "valid": 10, "test": 12, "test_combinations": 15, "test_pictures": 20},
}  # fmt: skip


def drawing(number):
    """An ellipse with a half transparent bar, of another form and colour for each number."""
    x, y, colour = 36 + number % 7, 30 + number % 5, 30 + 8 * number
    return SVG.format(
        f'<ellipse cx="{x}" cy="{y}" rx="{12 + number % 9}" ry="{8 + number % 11}" fill="rgb({colour},9,200)"/>'
        '<rect x="20.3" y="50" width="30" height="5.5" fill="black" opacity="0.5"/>'
    )


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    write_scenes(folder, GROUPS, drawing)
    return folder


@pytest.fixture(scope="module")
def made(raw, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    write_corpus(read("scenes", raw, LANGUAGES, OPTIONS), LANGUAGES, folder, compared=["scene"])
    return folder


def pairs(sets):
    return {frozenset(pair) for drawn in sets for pair in itertools.combinations(drawn, 2)}


def test_scenes_are_split_by_combination_and_picture_and_mentions_point_at_nouns(made):
    splits = {name: SceneSplit.load(made, name) for name in SPLITS}
    pictures = splits["train"].pictures
    held_out = {code for code, picture in pictures.items() if not picture.seen}
    assert {name: len(split) for name, split in splits.items()} == OPTIONS["scenes"]
    sets = {name: [{each.code for each in scene.objects} for scene in split.scenes] for name, split in splits.items()}
    known = {frozenset(drawn) for drawn in sets["train"]}
    assert len(known) <= OPTIONS["combinations"]
    assert {frozenset(drawn) for drawn in sets["valid"] + sets["test"]} <= known
    assert set().union(*known) == pictures.keys() - held_out
    assert pairs(sets["test_combinations"]).isdisjoint(pairs(known))
    assert {len(drawn) for drawn in sets["test_combinations"]} == {2, 3}
    assert set().union(*sets["test_combinations"]) <= pictures.keys() - held_out
    assert {len(drawn & held_out) for drawn in sets["test_pictures"]} == {1}
    assert set().union(*sets["test_pictures"]) >= held_out
    for split in splits.values():
        assert all(len({placed.code for placed in scene.objects}) == len(scene.objects) for scene in split.scenes)
        check_mentions(split, OPTIONS["captions"])
        for boxes in split.boxes:
            for a, b in itertools.combinations(boxes, 2):
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def check_mentions(split, count):
    """Names stand where mentions say; a kind stands in the last caption, or where the picture was never seen."""
    for scene, made in zip(split.scenes, split.captions, strict=True):
        pictures = [split.pictures[placed.code] for placed in scene.objects]
        assert len({caption.text for caption in made}) == len(made) == count
        all_seen = all(picture.seen for picture in pictures)
        for number, caption in enumerate(made):
            words, by_kind = caption.text.split(), set()
            for start, end, thing in caption.mentions:
                said, picture = " ".join(words[start:end]), pictures[thing]
                assert said == picture.kind or (picture.seen and said == picture.name)
                by_kind |= {thing} if said == picture.kind else set()
            unseen = {thing for thing, picture in enumerate(pictures) if not picture.seen}
            assert len(by_kind) == (number == count - 1) if all_seen else by_kind == unseen


def test_pictures_are_chosen_by_their_names_and_some_of_each_kind_are_held_out(made):
    pictures = SceneSplit.load(made, "train").pictures.values()
    assert {kind: [p.name for p in pictures if p.kind == kind] for kind in CHOSEN} == CHOSEN
    assert Counter(p.kind for p in pictures if not p.seen) == {"animal": 2, "tool": 1, "fruit": 1}
    assert all(p.svg == drawing(int(p.code, 16) - 0x1F400) for p in pictures)


def test_nothing_is_drawn_outside_the_boxes_and_they_are_tight(made):
    split = SceneSplit.load(made, "train")
    for scene, boxes in zip(split.scenes, split.boxes, strict=True):
        plain = draw(scene._replace(objects=()), split.pictures)
        for placed, (left, top, right, bottom) in zip(scene.objects, boxes, strict=True):
            drawn = (draw(scene._replace(objects=(placed,)), split.pictures) != plain).any(axis=2)
            rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
            gaps = [columns[0] - left, rows[0] - top, right - 1 - columns[-1], bottom - 1 - rows[-1]]
            # A unit of the artwork has at most 96 / 72 pixels, and both ends were rounded outwards.
            assert 0 <= min(gaps) <= max(gaps) <= 3


def test_images_are_what_pillow_composes(made):
    split = SceneSplit.load(made, "test")
    images = split.images([0, 3, 5])
    assert images.shape == (3, SIDE, SIDE, 3)
    assert images.dtype == np.uint8
    for image, scene in zip(images, (split.scenes[i] for i in (0, 3, 5)), strict=True):
        canvas = Image.fromarray(draw(scene._replace(objects=()), split.pictures)).convert("RGBA")
        for code, left, top, size in scene.objects:
            sprite = Image.fromarray(rasterise(split.pictures[code].svg, size))
            canvas.alpha_composite(sprite, (left, top))
        assert np.abs(np.asarray(canvas)[..., :3].astype(int) - image).max() <= 1


def test_backgrounds_change_linearly_from_one_colour_to_the_other():
    down = draw(Scene(([0, 100, 200], [223, 100, 0]), vertical=True, objects=()), {})
    across = draw(Scene(([0, 100, 200], [223, 100, 0]), vertical=False, objects=()), {})
    assert (down == across.transpose(1, 0, 2)).all()
    assert (down == down[:, :1]).all()
    assert (down[:, 0, 0] == np.arange(SIDE)).all()
    assert (down[:, 0, 1] == 100).all()
    assert down[[0, -1], 0, 2].tolist() == [200, 0]


def test_the_seed_alone_decides(raw):
    base = read("scenes", raw, LANGUAGES, OPTIONS)
    again, other = (read("scenes", raw, LANGUAGES, OPTIONS | {"seed": seed}) for seed in (3, 4))
    assert again == base
    assert again.files == base.files
    assert all(other[split] != base[split] for split in SPLITS)


def test_a_box_is_measured_outwards_and_something_must_be_drawn():
    assert extent(SVG.format('<rect x="10.5" y="20" width="30" height="7.2" fill="red"/>')) == (10, 20, 41, 28)
    assert scenes.box_of(Placed("1F400", left=100, top=50, size=36), (10, 21, 41, 28)) == (105, 60, 121, 64)
    with pytest.raises(ValueError, match="draws nothing"):
        extent(SVG.format(""))


@pytest.mark.parametrize(("inside", "said"), [
    ('<image href="{file}" width="9" height="9"/>', "refers to '{file}' outside of it"),
    ('<image xlink:href="../{name}" width="9" height="9"/>', "refers to '../{name}' outside of it"),
    ('<use href="{file}#a"/>', "refers to '{file}#a' outside of it"),
    ("<g>" * 100_000 + "</g>" * 100_000, "is nested more than 50 levels deep"),
    ("<g>", "ExpatError: mismatched tag"),
])  # fmt: skip
def test_a_drawing_that_would_read_a_file_or_break_the_renderer_is_refused(raw, tmp_path, inside, said):
    Image.new("RGB", (9, 9), "red").save(secret := tmp_path / "secret.png")
    shutil.copytree(raw, folder := tmp_path / "raw")
    names = {"file": str(secret), "name": secret.name}
    for path in (folder / "svg").iterdir():
        path.write_text(path.read_text().replace("</svg>", inside.format(**names) + "</svg>"))
    with pytest.raises(ReplicationError, match=r"svg/1F400\.svg cannot be read") as refused:
        read("scenes", folder, LANGUAGES, OPTIONS)
    shown = len("refers to '") + 80  # of a long reference the beginning is said
    assert said.format(**names)[:shown] in str(refused.value)


def test_entities_are_refused_and_parts_of_the_same_drawing_are_not(raw, tmp_path):
    shutil.copytree(raw, folder := tmp_path / "raw")
    for path in (folder / "svg").iterdir():
        path.write_text(path.read_text().replace("</svg>", '<g id="a"/><use href="#a"/></svg>'))
    assert read("scenes", folder, LANGUAGES, OPTIONS)
    for path in (folder / "svg").iterdir():
        path.write_text('<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + path.read_text())
    assert "declares a type of document or entities" in sentence_of(read, "scenes", folder, LANGUAGES, OPTIONS)


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
def names_and_boxes(draw, least=1):
    """Names, and boxes in cells of a grid of their own, so that they are disjoint."""
    count = draw(st.integers(least, 3))
    cells = draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=count, max_size=count, unique=True))
    names = draw(st.permutations(NAMES))[:count]
    side = st.integers(1, 20)
    boxes = [(20 * x, 20 * y, 20 * x + draw(side), 20 * y + draw(side)) for x, y in cells]
    return names, boxes


@given(scene=names_and_boxes(), seed=st.integers(0, 10**6))
def test_every_caption_is_grammatical_and_entirely_true_and_its_mentions_are_where_the_names_are(scene, seed):
    called, boxes = scene
    made = scene_captions.captions(called, boxes, 5, random.Random(seed))
    assert len({caption.text for caption in made}) == 5
    for caption in made:
        names, statements = scene_captions.parse(caption.text)
        assert {*names} == {*called}
        truth = scene_captions.scene_truth(caption.text, [[name] for name in called], boxes)
        assert truth["all_true"] == truth["grammatical"] == 1
        assert truth["mentioned"] == truth["right"] == truth["named"] == truth["objects"] == len(called)
        assert truth["true"] == truth["relations"] == len(statements)
        words, seen = caption.text.split(), set()
        for start, end, thing in caption.mentions:
            assert " ".join(words[start:end]) == called[thing]
            assert (words[start - 1] == "the") == (thing in seen)
            seen.add(thing)
        assert len(caption.mentions) == sum(caption.text.count(name) for name in names)


@given(scene=names_and_boxes(), other=names_and_boxes(), seed=st.integers(0, 1000))
def test_in_another_scene_its_statements_are_those_that_hold_there(scene, other, seed):
    """The same words about boxes of another scene: each statement is judged on these."""
    count = min(len(scene[0]), len(other[0]))
    names, own, boxes = scene[0][:count], scene[1][:count], other[1][:count]
    for caption in scene_captions.captions(names, own, 3, random.Random(seed)):
        said, statements = scene_captions.parse(caption.text)
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
    alone = ["owl"], [(0, 0, 5, 5)]
    everything = scene_captions.captions(*alone, 6, random.Random(0))
    ways = ("", "there is ", "a picture of ", "this is ", "here is ", "one can see ")
    assert {caption.text for caption in everything} == {f"{way}an owl" for way in ways}
    assert scene_captions.Caption("an owl", (scene_captions.Mention(1, 2, 0),)) in everything
    assert_refused("has not 7 different captions for 1 objects;", scene_captions.captions, *alone, 7, random.Random(0))


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
