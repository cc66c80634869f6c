"""Errors in closed form: against lemma 2 and theorem 2 as printed, sums that can be done by hand, and draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi

from replications.performer.kernel_error import expected_kernel, kernel_mse, orthogonal_mse_bound
from shared.attention.favor import random_projections

ESTIMATORS = ("positive", "hyperbolic", "trigonometric")
many = settings(max_examples=50)
seeds = st.integers(0, 2**31)
scales = st.floats(0.01, 1)
estimators = pytest.mark.parametrize("estimator", ESTIMATORS)


def pair(size, scale, seed, count=()):
    """x and y, of norms around ``scale`` · √K / K^{1/4}."""
    return np.random.default_rng(seed).normal(scale=scale / size**0.25, size=(2, *count, size))


def lemma_2(x, y, estimator, m):
    """As it is printed, with z = x + y and Δ = x - y."""
    z, delta, kernel = ((x + y) ** 2).sum(), ((x - y) ** 2).sum(), math.exp(x @ y)
    positive = math.exp(z) * kernel**2 * (1 - math.exp(-z)) / m
    return {
        "positive": positive,
        "hyperbolic": (1 - math.exp(-z)) / 2 * positive,
        "trigonometric": math.exp(z) / kernel**2 * (1 - math.exp(-delta)) ** 2 / (2 * m),
    }[estimator]


def simulated(x, y, estimator, projections, directions, norms, draws=10_000):
    """Estimates by definition: from the projections alone."""
    size = len(x)
    blocks = -(-projections // size)
    w = random_projections(draws * blocks * size, size, directions=directions, norms=norms)
    w = w.double().numpy().reshape(draws, -1, size)[:, :projections]
    half = (x @ x + y @ y) / 2
    if estimator == "trigonometric":
        return math.exp(half) * np.cos(w @ (x - y)).mean(1)
    return math.exp(-half) * (np.exp if estimator == "positive" else np.cosh)(w @ (x + y)).mean(1)


@many
@given(size=st.integers(1, 64), scale=scales, seed=seeds, m=st.integers(1, 300))
@estimators
def test_of_independent_gaussians_they_are_those_of_lemma_2(estimator, size, scale, seed, m):
    x, y = pair(size, scale, seed)
    found = kernel_mse(x, y, projections=m, estimator=estimator, orthogonal=False)
    assert found == pytest.approx(lemma_2(x, y, estimator, m), rel=1e-6)
    assert expected_kernel(x, y, estimator=estimator) == pytest.approx(math.exp(x @ y), rel=1e-12)


@many
@given(size=st.integers(1, 64), scale=scales, seed=seeds, m=st.integers(1, 300))
def test_orthogonal_positive_features_keep_theorem_2(size, scale, seed, m):
    x, y = pair(size, scale, seed)
    error, bound = kernel_mse(x, y, projections=m), orthogonal_mse_bound(x, y, projections=m)
    assert error <= bound * (1 + 1e-9)
    if m <= size:
        least = math.exp(-(x @ x + y @ y) / 2)
        printed = 2 * (m - 1) / (m * (size + 2)) * (math.exp(x @ y) - least) ** 2
        assert bound == pytest.approx(lemma_2(x, y, "positive", m) - printed, rel=1e-6)
    if m == 1:
        assert error == pytest.approx(lemma_2(x, y, "positive", 1), rel=1e-6)


@estimators
def test_two_orthogonal_projections_in_the_plane_by_quadrature(estimator):
    """K = 2: the second direction is the first turned by a right angle, and their norms are independent."""
    x, y = np.array([0.3, -0.8]), np.array([0.5, 0.4])
    t, half = (x - y if estimator == "trigonometric" else x + y), (x @ x + y @ y) / 2
    f = {"positive": np.exp, "hyperbolic": np.cosh, "trigonometric": np.cos}[estimator]
    factor = math.exp(half if estimator == "trigonometric" else -half)
    angles = np.arange(64) * 2 * math.pi / 64
    r = (np.arange(1500) + 0.5) / 100
    p = chi(2).pdf(r) / 100
    ends = np.linalg.norm(t) * np.cos(angles), np.linalg.norm(t) * np.sin(angles)
    of_angle = [(f(np.outer(end, r)) @ p, f(np.outer(end, r)) ** 2 @ p) for end in ends]
    second = (of_angle[0][1] + of_angle[1][1] + 2 * of_angle[0][0] * of_angle[1][0]).mean() / 4
    found = kernel_mse(x, y, projections=2, estimator=estimator)
    assert found == pytest.approx(factor**2 * second - math.exp(2 * x @ y), rel=1e-4)


@pytest.mark.parametrize("norms", ["chi", "sqrt"])
@pytest.mark.parametrize("directions", ["orthogonal", "iid"])
@pytest.mark.parametrize("projections", [8, 20])
@estimators
def test_they_are_those_of_draws(estimator, projections, directions, norms):
    """Within four standard errors, of the mean and of the mean square: 48 tests, by chance one in 300 times."""
    x, y = pair(8, 0.6, seed=3)
    kernel = math.exp(x @ y)
    values = simulated(x, y, estimator, projections, directions, norms)
    squares = (values - kernel) ** 2
    mean = expected_kernel(x, y, estimator=estimator, norms=norms)
    mse = kernel_mse(
        x, y, projections=projections, estimator=estimator, orthogonal=directions == "orthogonal", norms=norms
    )
    for found, expected in ((values, mean), (squares, mse)):
        assert abs(found.mean() - expected) < 4 * found.std() / math.sqrt(len(found))


def test_pairs_of_many_shapes_at_once_are_pairs_one_by_one():
    xs, ys = pair(8, 0.6, seed=4, count=(2, 3))
    for function in (kernel_mse, orthogonal_mse_bound):
        together = function(xs, ys, projections=12)
        assert together.shape == (2, 3)
        assert together[1, 2] == pytest.approx(function(xs[1, 2], ys[1, 2], projections=12), rel=1e-12)
    assert expected_kernel(xs, ys, norms="sqrt").shape == (2, 3)


@pytest.mark.parametrize("square", [0.0, 1e-9, 1.0, 100.0])
def test_error_is_none_where_the_estimate_is_certain(square):
    """Positive features at y = -x, trigonometric ones at y = x."""
    x = np.array([math.sqrt(square / 2), -math.sqrt(square / 2)])
    assert kernel_mse(x, -x, projections=4) == pytest.approx(0, abs=1e-12)
    assert kernel_mse(x, x, projections=4, estimator="trigonometric") == pytest.approx(0, abs=1e-12)
