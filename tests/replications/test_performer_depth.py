"""The study of depth: pairs of networks differ in attention alone, and shallower ones are parts of deeper ones."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from replications.performer.depth import Depth, Stack, depth_metrics, one_draw
from replications.performer.replication import build_model
from replications.performer.settings import DepthConfig, ModelConfig
from tests.replications.studied import measured

SMALL = {"depths": [1, 2, 4], "projections": [4, 16], "draws": 3, "length": 12, "symbols": 5}


class Steps(nn.Module):
    """States are embeddings of norm 1 (T = 1); each layer with features adds a positive number over √P to them."""

    def __init__(self, section, symbols, causal, spread):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(symbols, 3))
        self.register_buffer("exact", torch.tensor(section["attention"] == "softmax"))
        self.layers = nn.ModuleList(Step(section["features"], spread) for _ in range(section["layers"]))
        self.causal = causal

    def forward(self, symbols):
        assert not self.training
        h = nn.functional.normalize(self.embedding, dim=1)[symbols]
        for layer in self.layers:
            if not self.exact:
                h = h + layer.w
        return h


class Step(nn.Module):
    def __init__(self, features, spread):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("w", (spread * torch.randn(())).exp() / math.sqrt(features) * torch.tensor([1.0, 0, 0]))


def steps(spread=0.0):
    return lambda section, symbols, causal: Steps({"features": 1} | section, symbols, causal, spread)


def performers(section, symbols, causal):
    return build_model(ModelConfig.model_validate(section), symbols, causal)


def run(networks, seed=1, **changes):
    study = Depth(lambda config, *sizes: networks(config.model_dump(), *sizes), ModelConfig)
    return measured(study, {"study": "depth"} | SMALL | changes, seed)


def test_what_each_layer_adds_is_what_is_measured():
    """All layers add 1/√P to a state of norm 1: errors are l/√P, once the networks have the same weights."""
    metrics = run(steps(), length=1)
    assert run(steps(), length=12, sequences=3)["features_4.error_l1"] == pytest.approx(0.5, rel=1e-5)  # of all states
    for count, end in ((4, ""), (16, "_low"), (4, "_high")):
        found = [metrics[f"features_{count}.error{end}_l{layers}"] for layers in (1, 2, 4)]
        assert found == pytest.approx([layers / math.sqrt(count) for layers in (1, 2, 4)], rel=1e-5)
    for end in ("", "_low", "_high"):
        assert metrics[f"features_16.growth{end}"] == pytest.approx(4, rel=1e-5)
        assert metrics[f"features_16.least_step{end}"] == pytest.approx(2, rel=1e-5)
        assert metrics[f"most_over_fewest.error_ratio{end}_l2"] == pytest.approx(0.5, rel=1e-5)


@torch.inference_mode()
def test_a_shallower_network_has_the_projections_of_the_deepest():
    """What layers add spreads over orders of magnitude, so that sums of others' numbers would not rise."""
    torch.manual_seed(1)

    def stack(kind):
        return Stack(lambda layers: steps(5.0)({"attention": kind, "layers": layers}, 5, False).eval(), range(1, 7))

    exact, features = stack("softmax"), stack("positive")
    draws = [one_draw(exact, [features], torch.zeros(1, 1, dtype=torch.long))[0] for _ in range(10)]
    assert all(before < after * (1 + 1e-5) for errors in draws for before, after in pairwise(errors))
    assert len({errors[0] for errors in draws}) == 10


def test_the_seed_decides_all_draws():
    metrics = run(steps(1.0), seed=1)
    assert json.loads(json.dumps(metrics)) == metrics
    assert metrics == run(steps(1.0), seed=1)
    assert metrics["features_4.error_l4"] != run(steps(1.0), seed=2)["features_4.error_l4"]


def test_metrics_are_of_pairs():
    """Draws differ a hundredfold, and within each the deeper network is 3 times as far off, or 0.5 after 2 layers."""
    settings = DepthConfig(study="depth", **SMALL)
    draw = np.array([0.01, 0.1, 1.0])[:, None, None]
    errors = draw * np.array([[1.0, 6.0, 3.0], [0.5, 3.0, 1.5]])
    metrics = depth_metrics(settings, errors)
    for end in ("", "_low", "_high"):
        assert metrics[f"features_4.growth{end}"] == pytest.approx(3)
        assert metrics[f"features_4.least_step{end}"] == pytest.approx(0.5)
        assert metrics[f"most_over_fewest.error_ratio{end}_l4"] == pytest.approx(0.5)
    assert metrics["features_4.error_l1"] == pytest.approx(0.1)
    assert metrics["features_4.error_low_l1"] < 0.01 < 1 < metrics["features_4.error_high_l1"]


@pytest.mark.parametrize("causal", [False, True])
def test_performers_come_near_to_transformers_with_many_features(causal):
    network = {"heads": 4, "width": 8, "hidden": 16}
    metrics = run(performers, network=network, projections=[4, 4096], causal=causal, draws=4)
    for layers in SMALL["depths"]:
        assert metrics[f"features_4096.error_l{layers}"] < 0.1
        assert metrics[f"most_over_fewest.error_ratio_high_l{layers}"] < 0.5
    assert 0.01 < metrics["features_4.error_l1"] < 1
