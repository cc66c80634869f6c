"""Attention by layer and head: what is read, what is drawn."""

import numpy as np
import pytest
from matplotlib.image import imread

from replications.transformer.figures import SAID, draw_heads

BEIGE, GROUND = np.array([0xE6, 0xD5, 0xAE]) / 255, np.array([0xEE, 0xF2, 0xF7]) / 255


def kept(path, *lengths, layers=1, heads=2, one_hot=True):
    arrays = {}
    for i, length in enumerate(lengths):
        rows = np.eye(length, dtype=np.float16) * one_hot
        words = np.array([f"word{k}" for k in range(length)])
        arrays |= {f"{kind}_{i}": np.broadcast_to(rows, (layers, heads, length, length)) for kind in SAID}
        arrays |= {f"source_{i}": words, f"target_{i}": words}
    np.savez(path, **arrays)
    return path


def drawn(path, source, kind="encoder"):
    assert draw_heads(source, kind, path)
    picture = imread(path)[..., :3]
    assert picture.shape[1] == 1400
    return picture


def share(picture, colour):
    return float((abs(picture - colour).max(axis=-1) < 0.01).mean())


def test_every_head_is_drawn(tmp_path):
    """Each has a ground of its own colour: twice the layers are twice as much of it."""
    pictures = [
        drawn(tmp_path / "a.png", kept(tmp_path / "a.npz", 10, layers=n, heads=4, one_hot=False)) for n in (1, 2)
    ]
    one, two = (share(picture, GROUND) * picture.size for picture in pictures)
    assert two == pytest.approx(2 * one, rel=0.1)


def test_what_a_decoder_may_not_see_is_beige(tmp_path):
    source = kept(tmp_path / "heads.npz", 10)
    beige = {kind: share(drawn(tmp_path / f"{kind}.png", source, kind), BEIGE) for kind in SAID}
    assert beige["encoder"] == beige["cross"] == 0.0
    assert beige["decoder"] > 0.2


def test_a_rerun_gives_the_same_bytes(tmp_path):
    source = kept(tmp_path / "heads.npz", 8)
    for name in ("first", "second"):
        drawn(tmp_path / f"{name}.png", source, "cross")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()


def test_the_longest_sentence_whose_words_fit_is_drawn(tmp_path):
    for name, lengths in (("several", (5, 30, 12, 9)), ("alone", (12,)), ("short", (5,))):
        drawn(tmp_path / f"{name}.png", kept(tmp_path / f"{name}.npz", *lengths))
    files = {name: (tmp_path / f"{name}.png").read_bytes() for name in ("several", "alone", "short")}
    assert files["several"] == files["alone"] != files["short"]


ROWS = [(4, 12, 2), (8, 6, 4), (3, 12, 2), (1, 12, 1), (2, 25, 2)]  # of two layers


@pytest.mark.parametrize(("heads", "length", "rows"), ROWS)
def test_layers_begin_rows_and_words_have_room(tmp_path, heads, length, rows):
    """Rows of heatmaps are counted as long runs of their ground down the first column of pixels that is within any."""
    source = kept(tmp_path / "heads.npz", length, layers=2, heads=heads, one_hot=False)
    picture = drawn(tmp_path / "heads.png", source)
    ground = abs(picture - GROUND).max(axis=-1) < 0.01
    down = ground[:, np.flatnonzero(ground.mean(axis=0) > 0.3)[5]]
    edges = np.flatnonzero(np.diff(down, prepend=False, append=False))
    assert (edges[1::2] - edges[::2] > 100).sum() == rows


def test_nothing_is_drawn_of_a_model_without(tmp_path):
    assert not draw_heads(tmp_path / "heads.npz", "encoder", tmp_path / "heads.png")
    assert not (tmp_path / "heads.png").exists()
