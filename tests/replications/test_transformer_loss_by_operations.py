"""Loss against operations: where a curve's points lie."""

import json

import pytest
from matplotlib.image import imread

from replications.transformer.figures import loss_by_operations
from shared.claims.results import load_results
from shared.reports.curves import read_curves
from tests.synthetic_runs import Variant, build

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
        "shared.reports.figures.draw_curves", lambda _, curves, *__, **how: handed.append((curves, how))
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


def test_seeds_that_stopped_early_count_by_their_mean(tmp_path, curves):
    """Metrics hold the mean of the seeds' operations, so they are divided by the mean of their updates."""
    variant = Variant("generated", 0.9, updates=100, operations=9e12)
    runs = build(tmp_path, {"a": variant}, examples=5, seeds=(1, 2))
    path = runs / "a/train/seed2/run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"updates": 50}))
    loss_by_operations([load_results(runs)["a"]], tmp_path / "figure.png")
    assert max(curves[0][0][0]) == pytest.approx(9e12 * 100 / 75)


def test_it_is_drawn_if_there_is_anything_to_draw(results, tmp_path):
    path = tmp_path / "figure.png"
    assert not loss_by_operations([results["uncounted"]], path)
    assert not path.exists()
    assert loss_by_operations(list(results.values()), path)
    first = path.read_bytes()
    assert imread(path).shape[1] == 1400
    assert loss_by_operations(list(results.values()), path)
    assert path.read_bytes() == first
