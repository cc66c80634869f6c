"""Pictures lit by attention: which are drawn, where they are bright, and what is said of them."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from PIL import Image

from shared.reports.explorer import gather_maps
from shared.reports.naming import PALETTE
from shared.tasks.captioning.overlays import (
    DARKEST,
    LONGEST,
    KeptImage,
    chosen,
    draw_overlays,
    lit,
    read_images,
)
from tests.tasks.captioning.synthetic_captioning import CAPTIONERS, GRID, SIDE, Captioner, write_attention

SHADED_WIDTH = 910  # pixels


@pytest.fixture
def source(tmp_path):
    write_attention(tmp_path / "attention.npz", CAPTIONERS["soft"])
    return tmp_path / "attention.npz"


def kept(name, *, correct=None, words=3):
    image, weights, boxes = np.zeros((8, 8, 3), np.uint8), np.empty((0, 2, 2)), np.empty((0, 4))
    return KeptImage(name, image, ["w"] * words, weights, [], boxes, ["r"], correct)


def ids(images):
    return [image.id for image in images]


def test_what_evaluation_keeps_is_read_in_its_order(source):
    images = read_images(source)
    assert ids(images) == ["test-0", "test-1", "test_combinations-2", "test_combinations-3",
                           "test_pictures-4", "test_pictures-5"]  # fmt: skip
    last = images[-1]
    assert last.words == ["a", "banana", "above", "a", "drum", "</s>"]
    assert last.weights.shape == (6, GRID, GRID)
    assert last.weights.sum(axis=(1, 2)) == pytest.approx(np.ones(6))
    assert last.gates[-1] == pytest.approx(0.8)
    assert last.boxes.tolist() == [[2, 4, 20, 30]]
    assert [image.correct for image in images] == [False, True] * 3
    assert last.judged == "test_pictures-5, caption true ✔; a reference: a banana above a drum"


def test_of_photos_nothing_is_known_but_the_references(tmp_path):
    write_attention(tmp_path / "attention.npz", Captioner(0.5, mass=0.5, task="photos"))
    images = read_images(tmp_path / "attention.npz")
    assert {image.correct for image in images} == {None}
    assert images[0].judged == "test-0; a reference: a banana above a drum"
    assert images[0].boxes.shape == (0, 4)
    (figure,) = draw_overlays("soft", tmp_path / "attention.npz", tmp_path / "a.png", "Photos")
    assert figure.caption.startswith("Photos. Above each picture:")
    assert "gate" not in figure.caption
    assert "Frames" not in figure.caption


def test_a_reader_can_choose_a_picture_and_a_word(tmp_path):
    write_attention(tmp_path / "attention.npz", Captioner(0.5, mass=0.5, task="photos"))
    images = {image.id: image for image in read_images(tmp_path / "attention.npz")}
    (figure,) = draw_overlays("soft", tmp_path / "attention.npz", tmp_path / "a.png", "Photos")
    assert len({each.picture for each in figure.maps}) == len(figure.maps) == 4
    for each in figure.maps:
        image = images[each.choices["Picture"].split(":")[0]]
        assert each.rows == image.words
        assert np.array(each.weights).reshape(image.weights.shape) == pytest.approx(image.weights)
        with Image.open(each.picture) as picture:
            drawn = np.asarray(picture.convert("RGB"), int)
        assert np.abs(drawn - image.image).mean() < 8
    _, (*_, explorer) = gather_maps({"": [figure]})
    first = explorer.data["maps"][0]
    assert {max(row) for row in first["weights"]} == {100}
    assert first["across"] == images[next(iter(images))].weights.shape[2]


def test_the_place_attended_to_is_bright_and_what_is_far_from_it_dark():
    weights = np.zeros((4, 4), np.float32)
    weights[1, 2] = 1.0
    found = lit(np.full((64, 64, 3), 200, np.uint8), weights)
    assert found.dtype == np.uint8
    assert (found[23:25, 39:41] == 200).all()
    assert (found[:, :8] == 200 * DARKEST).all()
    assert (np.diff(found[24, :40, 0].astype(int)) >= 0).all()


def test_even_attention_leaves_the_picture_as_it_is():
    picture = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    assert (lit(picture, np.full((14, 14), 1 / 196, np.float32)) == picture).all()


def test_the_light_is_the_weights_upsampled_between_the_centres_of_places():
    """A long ramp of weights is a ramp of light: smoothing leaves the inside of a line as it is."""
    weights = np.tile(np.arange(1, 15, dtype=np.float32), (14, 1))
    row = lit(np.full((224, 224, 3), 255, np.uint8), weights)[112, :, 0].astype(float)
    slope = np.diff((row / 255 - DARKEST) / (1 - DARKEST))[80:144].mean()
    largest = 14 - 0.5  # smoothed at the edge
    assert slope == pytest.approx(1 / 16 / largest, rel=0.05)


def test_half_of_the_images_are_wrong_ones_and_the_splits_take_turns():
    images = [kept(f"{split}-{i}", correct=i % 2 == 0) for split in ("test", "other") for i in range(4)]
    assert ids(chosen(images, 4)) == ["test-0", "other-0", "test-1", "other-1"]


@pytest.mark.parametrize(("correct", "expected"), [(True, "0123"), (False, "0123"), (None, "0123")])
def test_images_of_one_kind_fill_the_figure(correct, expected):
    images = [kept(f"test-{i}", correct=correct) for i in range(6)]
    assert ids(chosen(images, 4)) == [f"test-{i}" for i in expected]


def test_few_of_a_kind_are_made_up_for_by_the_other():
    images = [kept(f"test-{i}", correct=i > 0) for i in range(6)]
    assert ids(chosen(images, 4)) == ["test-1", "test-2", "test-3", "test-0"]


def test_long_captions_are_left_out_if_there_are_shorter_ones():
    long, longer, short = kept("a-0", words=LONGEST + 1), kept("a-1", words=LONGEST + 2), kept("a-2")
    assert ids(chosen([long, short], 4)) == ["a-2"]
    assert ids(chosen([longer, long], 4)) == ["a-0"]
    assert chosen([], 4) == []


def test_the_figure_has_frames_on_a_white_ground(source, tmp_path):
    """Four images with a frame each, and with a white margin."""
    (figure,) = draw_overlays("soft", source, tmp_path / "a.png", "Soft attention.")
    assert figure.caption.endswith("Below: the gate β. Frames: the boxes of the objects.")
    drawn = imread(tmp_path / "a.png")[..., :3]
    assert drawn.shape[1] == SHADED_WIDTH
    frames = (abs(drawn - np.array(to_rgb(PALETTE["orange"]))).max(axis=-1) < 0.15).sum()
    assert frames > 4 * 60
    assert (drawn[:, -3:] == 1.0).all()


def save(path, image, words):
    """One image whose words all have even attention."""
    np.savez(
        path, rows=2, columns=2, id_0="test-0", image_0=image, words_0=words, references_0=["r"],
        weights_0=np.full((len(words), 4), 0.25),
    )  # fmt: skip
    return path


def test_more_words_take_more_lines(tmp_path):
    heights = []
    for words in (5, LONGEST):
        source = save(tmp_path / "a.npz", np.zeros((SIDE, SIDE, 3), np.uint8), ["word"] * words)
        draw_overlays("soft", source, tmp_path / "a.png", "")
        heights.append(imread(tmp_path / "a.png").shape[0])
    one, three = heights
    assert 2.3 * one < three < 3 * one  # the title is there once


def test_the_picture_keeps_its_colours(tmp_path):
    """Shades that a palette of 256 colours lacks are mixed: their mean is that of the picture."""
    spots = np.random.default_rng(0).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    picture = Image.fromarray(spots).resize((224, 224), Image.Resampling.BICUBIC)
    draw_overlays("soft", save(tmp_path / "a.npz", np.asarray(picture), ["</s>"]), tmp_path / "a.png", "")
    drawn = imread(tmp_path / "a.png")[..., :3]
    inside = drawn[50:140, 8:104]  # of the first picture
    expected = np.asarray(picture.resize((107, 107), Image.Resampling.BOX))[8:98, 4:100] / 255
    assert inside.mean(axis=(0, 1)) == pytest.approx(expected.mean(axis=(0, 1)), abs=0.03)
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) <= 256


def test_nothing_is_drawn_of_models_without_attention(tmp_path):
    write_attention(tmp_path / "attention.npz", CAPTIONERS["mean"])
    assert draw_overlays("soft", tmp_path / "attention.npz", tmp_path / "a.png", "") == []
    assert draw_overlays("soft", tmp_path / "none.npz", tmp_path / "a.png", "") == []
    assert not (tmp_path / "a.png").exists()


def test_a_redrawn_figure_has_the_same_bytes(source, tmp_path):
    for name in ("first", "second"):
        draw_overlays("soft", source, tmp_path / f"{name}.png", "")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()
