"""Figures of Vaswani et al. alone: attention by layer and head, and loss against operations."""

import numpy as np
import pytest
from matplotlib.image import imread

from replications.transformer.figures import SAID, draw_heads, loss_by_operations, maps_of_heads
from shared.claims.results import load_results
from shared.reports.curves import read_curves
from tests.synthetic_runs import Variant, build

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


def test_what_a_decoder_may_not_see_is_beige(tmp_path):
    source = kept(tmp_path / "heads.npz", 10)
    beige = {kind: share(drawn(tmp_path / f"{kind}.png", source, kind), BEIGE) for kind in SAID}
    assert beige["encoder"] == beige["cross"] == 0.0
    assert beige["decoder"] > 0.2


ROWS = [(4, 12, 2), (8, 6, 4), (3, 12, 2), (1, 12, 1), (2, 25, 2)]  # of two layers


def test_nothing_is_drawn_of_a_model_without(tmp_path):
    assert not draw_heads(tmp_path / "heads.npz", "encoder", tmp_path / "heads.png")
    assert not (tmp_path / "heads.png").exists()


def test_every_head_is_a_map_and_a_decoder_looks_at_what_came_before(tmp_path):
    weights = np.arange(2 * 3 * 4 * 4, dtype=np.float16).reshape(2, 3, 4, 4) / 100
    path = tmp_path / "heads.npz"
    words = {f"{side}_0": np.array([f"{side[0]}{k}" for k in range(4)]) for side in ("source", "target")}
    np.savez(path, **words, decoder_0=weights)
    maps = maps_of_heads("base", path, "decoder")
    assert [(each.choices["Layer"], each.choices["Head"]) for each in maps] == [
        (layer, head) for layer in "12" for head in "123"
    ]
    assert maps[0].rows == ["t0", "t1", "t2", "t3"]
    assert maps[0].columns == ["<s>", "t0", "t1", "t2"]
    assert np.array(maps[4].weights) == pytest.approx(weights[1, 1].astype(float))


VARIANTS = {
    "cheap": Variant("generated", 0.9, updates=200, operations=4e15),
    "dear": Variant("generated", 0.95, updates=100, operations=4e17),
    "uncounted": Variant("generated", 0.9, updates=100),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs"), VARIANTS, examples=10, seeds=(1, 2)))


@pytest.fixture
def curves(monkeypatch):
    """What is handed over to be drawn."""
    handed = []
    monkeypatch.setattr(
        "replications.transformer.figures.draw_curves", lambda _, curves, *__, **how: handed.append((curves, how))
    )
    return handed


def test_operations_are_spread_evenly_over_the_updates(results, curves, tmp_path):
    loss_by_operations(list(results.values()), tmp_path / "figure.png")
    ((cheap, dear, uncounted), options) = curves[0]
    assert sorted(cheap) == pytest.approx([4e15 * step / 200 for step in range(25, 201, 25)])
    assert sorted(dear) == pytest.approx([1e17, 2e17, 3e17, 4e17])
    assert list(dear.values()) == list(read_curves(results["dear"], metric="loss", split="valid").values())
    assert uncounted == {}
    assert options["powers"]


def test_it_is_drawn_if_there_is_anything_to_draw(results, tmp_path):
    path = tmp_path / "figure.png"
    assert not loss_by_operations([results["uncounted"]], path)
    assert not path.exists()
    assert loss_by_operations(list(results.values()), path)
    first = path.read_bytes()
    assert imread(path).shape[1] == 1400
    assert loss_by_operations(list(results.values()), path)
    assert path.read_bytes() == first
