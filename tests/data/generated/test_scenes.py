"""Scenes of hand-made pictures."""

import itertools
import shutil
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from shared.data.generated import scenes
from shared.data.generated.scenes import LANGUAGES, SIDE, Artwork, Placed, Scene, SceneSplit, extent, rasterise
from shared.data.readers import read
from shared.data.splits import write_corpus
from shared.errors import ReplicationError
from tests.inputs.raw_data import SVG, write_scenes
from tests.refused import sentence_of

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
    pictures = splits["train"].artwork.pictures
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
        pictures = [split.artwork.pictures[placed.code] for placed in scene.objects]
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
    pictures = SceneSplit.load(made, "train").artwork.pictures.values()
    assert {kind: [p.name for p in pictures if p.kind == kind] for kind in CHOSEN} == CHOSEN
    assert Counter(p.kind for p in pictures if not p.seen) == {"animal": 2, "tool": 1, "fruit": 1}
    assert all(p.svg == drawing(int(p.code, 16) - 0x1F400) for p in pictures)


def test_nothing_is_drawn_outside_the_boxes_and_they_are_tight(made):
    split = SceneSplit.load(made, "train")
    for scene, boxes in zip(split.scenes, split.boxes, strict=True):
        plain = split.artwork.draw(scene._replace(objects=()))
        for placed, (left, top, right, bottom) in zip(scene.objects, boxes, strict=True):
            drawn = (split.artwork.draw(scene._replace(objects=(placed,))) != plain).any(axis=2)
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
        canvas = Image.fromarray(split.artwork.draw(scene._replace(objects=()))).convert("RGBA")
        for code, left, top, size in scene.objects:
            sprite = Image.fromarray(rasterise(split.artwork.pictures[code].svg, size))
            canvas.alpha_composite(sprite, (left, top))
        assert np.abs(np.asarray(canvas)[..., :3].astype(int) - image).max() <= 1


def test_backgrounds_change_linearly_from_one_colour_to_the_other():
    artwork = Artwork([])
    down = artwork.draw(Scene(([0, 100, 200], [223, 100, 0]), vertical=True, objects=()))
    across = artwork.draw(Scene(([0, 100, 200], [223, 100, 0]), vertical=False, objects=()))
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
