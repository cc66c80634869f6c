"""The studies of kernels and of depth: draws are independent, closed forms agree; pairs differ in attention alone."""

import itertools
import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from replications.performer import kernels
from replications.performer.depth import Depth, Stack, depth_metrics, one_draw
from replications.performer.draws import mean_interval, ratio_interval
from replications.performer.kernel_error import kernel_mse, orthogonal_mse_bound
from replications.performer.replication import build_model
from replications.performer.settings import DepthConfig, KernelsConfig, ModelConfig
from shared.attention.favor import SoftmaxFeatures
from tests.replications.studied import measured

ESTIMATORS = ("positive", "hyperbolic", "trigonometric")
DIRECTIONS = ("orthogonal", "iid", "uncorrected")
SMALL = {
    "key_size": 4, "angles": [60, 120], "kernel_projections": 8, "draws": 50, "length": 24, "projections": [4, 10],
    "samples": 3,
}  # fmt: skip


def settings(**changes):
    return KernelsConfig(study="kernels", **SMALL | changes)


def run(seed=1, **changes):
    return measured(kernels.Kernels(), {"study": "kernels"} | SMALL | changes, seed)


def test_pairs_have_their_norms_and_angles():
    x, y = kernels.pairs(settings(norm=0.6, angles=[20, 60, 150], key_size=5, kernel_projections=5))
    for point in (x, y):
        np.testing.assert_allclose(np.linalg.norm(point, axis=1), 0.6)
    np.testing.assert_allclose((x * y).sum(1), 0.36 * np.cos(np.radians([20, 60, 150])))
    np.testing.assert_allclose((x + y) - (x + y)[:, :1], 0, atol=1e-15)


def test_each_draw_is_the_estimate_of_its_own_projections(monkeypatch):
    monkeypatch.setattr(kernels, "AT_ONCE", 5)
    few = settings(draws=7)
    x, y = kernels.pairs(few)
    torch.manual_seed(3)
    found = kernels.kernel_estimates(few, x, y)
    torch.manual_seed(3)
    drawn = {kind: [] for kind in DIRECTIONS}
    for draws, kind in itertools.product((5, 2), DIRECTIONS):
        drawn[kind] += SoftmaxFeatures(key_size=4, projections=8 * draws, directions=kind).w.split(8)
    assert found.keys() == set(itertools.product(ESTIMATORS, DIRECTIONS))
    for (estimator, kind), values in found.items():
        one = SoftmaxFeatures(key_size=4, projections=8, estimator=estimator, scale=1.0)
        expected = []
        for w in drawn[kind]:
            one.w.copy_(w)
            expected.append(one.kernel(torch.from_numpy(x), torch.from_numpy(y)).diagonal().numpy())
        np.testing.assert_allclose(values, np.array(expected) / np.exp((x * y).sum(1)), rtol=1e-12)


def test_bias_and_errors_of_known_draws():
    """Estimates of the kernel times numbers of such a mean, plus and minus such a swing in turns."""
    few = settings(draws=400)
    x, y = kernels.pairs(few)
    known = dict.fromkeys(itertools.product(ESTIMATORS, DIRECTIONS), (1, 0.2)) | {
        ("positive", "iid"): (1.1, 0.2), ("trigonometric", "orthogonal"): (1, 0.4), ("trigonometric", "iid"): (1, 0.1)
    }  # fmt: skip
    turns = np.where(np.arange(400) % 2, 1, -1)[:, None] * np.ones(2)
    metrics = kernels.kernel_metrics(few, x, y, {kind: mean + swing * turns for kind, (mean, swing) in known.items()})
    half = 0.2 / math.sqrt(399)
    for name, bias in {"positive_orthogonal": 0.0, "positive_iid": 0.1}.items():
        assert metrics[f"{name}.relative_bias_a60"] == pytest.approx(bias)
        assert metrics[f"{name}.relative_bias_high_a60"] == pytest.approx(bias + 1.966 * half, rel=1e-3)
        assert metrics[f"{name}.bias_at_most"] == pytest.approx(bias + 2.250 * half, rel=1e-3)  # Bonferroni for two
        assert metrics[f"{name}.bias_at_least"] == pytest.approx(max(0, bias - 2.250 * half), rel=1e-3)
    assert metrics["positive_orthogonal.mse_a120"] == pytest.approx(0.04)
    assert metrics["positive_iid.mse_a120"] == pytest.approx(0.05)
    exact = np.exp((x * y).sum(1)) ** 2
    ratios = {
        "orthogonal_over_iid": 0.04 / 0.05, "trigonometric_over_positive": 0.16 / 0.04,
        "trigonometric_over_positive_iid": 0.01 / 0.05,
        "orthogonal_over_bound": 0.04 * exact[0] / orthogonal_mse_bound(x, y, projections=8)[0],
    }  # fmt: skip
    assert {name: metrics[f"{name}.mse_ratio_a60"] for name in ratios} == pytest.approx(ratios)
    for name, orthogonal, mse in (("positive_orthogonal", True, 0.04), ("trigonometric_iid", False, 0.01)):
        estimator = name.partition("_")[0]
        closed = kernel_mse(x, y, projections=8, estimator=estimator, orthogonal=orthogonal) / exact
        assert metrics[f"{name}.closed_mse_a120"] == pytest.approx(closed[1])
        assert metrics[f"{name}.closed_mse_off_at_most"] == pytest.approx(np.abs(mse / closed - 1).max())


def test_errors_of_attention_are_those_of_the_estimated_weights():
    """By the matrices of all weights, which the study never makes."""
    one = settings(samples=2, projections=[4, 10])
    torch.manual_seed(5)
    errors, negative = kernels.output_errors(one, 1.5)
    torch.manual_seed(5)
    for sample in range(2):
        q, k, v = torch.randn(3, 1, 1, 24, 4)
        q, k = 1.5 * q, 1.5 * k
        exact = torch.softmax(q @ k.mT / 2, -1) @ v
        for (place, count), kind in itertools.product(enumerate((4, 10)), ("orthogonal", "iid")):
            features = SoftmaxFeatures(key_size=4, projections=count, directions=kind)
            for features.estimator in kernels.COMPARED:
                a = features.kernel(q.double(), k.double())
                out = a @ v.double() / a.sum(-1, keepdim=True)
                error = (out - exact).square().mean() / exact.square().mean()
                found = errors[features.estimator, kind][sample, place]
                assert found == pytest.approx(float(error), rel=1e-2)
                share = (a.sum(-1) <= 0).double().mean()
                assert negative[features.estimator, kind][sample, place] == pytest.approx(float(share))
    assert max(shares.max() for (estimator, _), shares in negative.items() if estimator == "positive") == 0
    assert max(shares.max() for (estimator, _), shares in negative.items() if estimator != "positive") > 0


def test_output_metrics_are_geometric_means_and_ratios_of_pairs():
    some, rng = settings(), np.random.default_rng(1)
    base = rng.uniform(1, 9, (3, 2))
    factor = {"positive": np.array([2.0, 2.0]), "trigonometric": np.array([6.0, 24.0])}
    errors = {}
    for estimator, kind in itertools.product(kernels.COMPARED, ("orthogonal", "iid")):
        errors[estimator, kind] = factor[estimator] * base * (1.5 if kind == "iid" else 1.0)
    shares = np.array([[0.1, 0.0], [0.2, 0.0], [0.6, 0.3]])
    metrics = kernels.output_metrics(some, "small", errors, dict.fromkeys(errors, shares))
    expected = dict.fromkeys(("orthogonal_over_iid", "trigonometric_orthogonal_over_iid"), [2 / 3] * 3)
    expected["trigonometric_over_positive"] = [6, 3, 12]
    assert expected.keys() == kernels.OUTPUT_RATIOS.keys()
    for (name, ratios), end in itertools.product(expected.items(), ("", "_low", "_high")):
        found = [metrics[f"{name}.output_ratio_small{end}{size}"] for size in ("", "_m4", "_m10")]
        np.testing.assert_allclose(found, ratios)
    mean = metrics["positive_orthogonal.output_mse_small_m4"]
    assert mean == pytest.approx(2 * math.exp(np.log(base[:, 0]).mean()))
    assert metrics["positive_orthogonal.output_mse_small_low_m4"] < mean
    assert metrics["trigonometric_iid.negative_normalisers_small_m4"] == pytest.approx(0.3)


def test_the_study_is_decided_by_its_seed():
    metrics = run(seed=1)
    assert json.loads(json.dumps(metrics)) == metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics == run(seed=1)
    other = run(seed=2)
    assert other.keys() == metrics.keys()
    assert other["positive_iid.mse_a60"] != metrics["positive_iid.mse_a60"]
    for name, size in itertools.product(("small", "large"), ("_m4", "_m10")):
        assert metrics[f"positive_orthogonal.negative_normalisers_{name}{size}"] == 0


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_the_interval_of_a_ratio_holds_the_ratio_19_times_in_20(shared):
    """Of lognormal draws, whose means are known, independent or in pairs."""
    rng = np.random.default_rng(1)
    common, *own = rng.normal(size=(3, 1000, 4000))
    x, y = (np.exp(np.sqrt(shared) * common + np.sqrt(1 - shared) * z) for z in own)
    value, low, high = ratio_interval(3 * x, y)
    np.testing.assert_allclose(value, 3 * x.mean(0) / y.mean(0))
    assert ((low < 3) & (high > 3)).mean() == pytest.approx(0.95, abs=0.015)


def test_the_ratio_to_a_constant_is_a_mean():
    x = np.random.default_rng(1).uniform(4, 5, (400, 3))
    value, low, high = ratio_interval(x, np.array([[2.0, 2.0, 4.0]]))
    _, expected_low, expected_high = mean_interval(x / [2.0, 2.0, 4.0])
    np.testing.assert_allclose(value, x.mean(0) / [2.0, 2.0, 4.0])
    np.testing.assert_allclose([low, high], [expected_low, expected_high], rtol=1e-4)


def test_the_interval_of_logarithms_is_that_of_a_geometric_mean():
    x = np.random.default_rng(1).uniform(4, 5, (10, 2))
    np.testing.assert_allclose(mean_interval(np.log(x)).exp().value, stats.gmean(x))


SMALL_DEPTH = {"depths": [1, 2, 4], "projections": [4, 16], "draws": 3, "length": 12, "symbols": 5}


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


def run_depth(networks, seed=1, **changes):
    study = Depth(lambda config, *sizes: networks(config.model_dump(), *sizes), ModelConfig)
    return measured(study, {"study": "depth"} | SMALL_DEPTH | changes, seed)


def test_what_each_layer_adds_is_what_is_measured():
    """All layers add 1/√P to a state of norm 1: errors are l/√P, once the networks have the same weights."""
    metrics = run_depth(steps(), length=1)
    assert run_depth(steps(), length=12, sequences=3)["features_4.error_l1"] == pytest.approx(
        0.5, rel=1e-5
    )  # of all states
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
    metrics = run_depth(steps(1.0), seed=1)
    assert json.loads(json.dumps(metrics)) == metrics
    assert metrics == run_depth(steps(1.0), seed=1)
    assert metrics["features_4.error_l4"] != run_depth(steps(1.0), seed=2)["features_4.error_l4"]


def test_metrics_are_of_pairs():
    """Draws differ a hundredfold, and within each the deeper network is 3 times as far off, or 0.5 after 2 layers."""
    settings = DepthConfig(study="depth", **SMALL_DEPTH)
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
    metrics = run_depth(performers, network=network, projections=[4, 4096], causal=causal, draws=4)
    for layers in SMALL_DEPTH["depths"]:
        assert metrics[f"features_4096.error_l{layers}"] < 0.1
        assert metrics[f"most_over_fewest.error_ratio_high_l{layers}"] < 0.5
    assert 0.01 < metrics["features_4.error_l1"] < 1
