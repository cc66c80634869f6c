"""Output layers: distributions by their definitions, at the limits of numbers, and samples that have them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def transparent(symbols, components=0, dtype=torch.float64):
    """A layer whose states are the parameters themselves: logits, or those of a mixture, means and log scales."""
    if components:
        layer = MixtureOfLogistics(width=3 * components, levels=symbols, components=components).to(dtype)
    else:
        layer = CategoricalOutput(width=symbols, symbols=symbols).to(dtype)
    nn.init.eye_(layer.projection.weight)
    nn.init.zeros_(layer.projection.bias)
    return layer


# A softmax


def test_large_logits_give_finite_nats_and_gradients():
    h = torch.tensor([1e4, -1e4, 0.0]).expand(3, -1).clone().requires_grad_()
    nats = transparent(3, dtype=torch.float32)(h, torch.arange(3))
    assert nats.tolist() == [0, 2e4, 1e4]
    nats.sum().backward()
    assert h.grad.isfinite().all()


def test_what_has_next_to_no_probability_is_not_drawn():
    layer = transparent(5, dtype=torch.float32)
    state = torch.tensor([0.0, -1e30, 0.0, -1e9, -200.0])
    assert set(layer.sample(state.expand(5000, -1), seeded(1)).tolist()) == {0, 2}


# A mixture of logistics


def parameters(*shape, components, seed, log_scale=-2.0):
    logits, means, log_scales = torch.randn(3, *shape, components, generator=seeded(seed), dtype=torch.float64)
    return torch.cat((logits, 0.6 * means, log_scales + log_scale), dim=-1)


def differences(state, levels):
    """The categorical distribution (N, V) of states (N, 3C) in SciPy's words, as differences of probabilities."""
    logits, means, log_scales = (part.numpy()[..., None] for part in state.chunk(3, dim=-1))
    log_scales = log_scales.clip(-7, 7)  # as the layer holds them
    bounds = torch.linspace(-1, 1, levels, dtype=torch.float64)[:-1].numpy() + 1 / (levels - 1)
    below = stats.logistic.cdf(bounds, loc=means, scale=math.e**log_scales)  # (N, C, V - 1)
    n, components, _ = below.shape
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(n, components, 2)
    cumulative = torch.cat((ends[..., :1], torch.from_numpy(below), ends[..., 1:]), dim=-1)
    weights = torch.from_numpy(logits).softmax(dim=1)
    return (weights * cumulative.diff()).sum(1)


@given(st.integers(2, 256), st.integers(1, 10), st.floats(-4, 2), st.integers(0, 9999))
@settings(max_examples=60)
def test_it_is_the_categorical_distribution_of_differences(levels, components, log_scale, seed):
    layer = transparent(levels, components)
    state = parameters(5, components=components, seed=seed, log_scale=log_scale)
    expected = differences(state, levels)
    found = layer.log_probs(state)
    assert torch.allclose(found.exp(), expected, rtol=1e-7, atol=1e-12)
    assert torch.allclose(found.logsumexp(-1), torch.zeros(5, dtype=torch.float64), atol=1e-12)
    targets = torch.arange(levels).expand(5, -1)
    assert torch.allclose(layer(state.unsqueeze(1).expand(-1, levels, -1), targets), -found, atol=1e-12)


@pytest.mark.parametrize("log_scale", [-1e4, -7, -5, 0, 7, 1e4])
@pytest.mark.parametrize("mean", [-1e6, -1.0, 0.003, 1.0, 40.0])
@pytest.mark.parametrize("levels", [2, 7, 256])
def test_extreme_parameters_give_a_distribution_and_finite_gradients(levels, mean, log_scale):
    layer = transparent(levels, 2, torch.float32)
    state = torch.tensor([0.3, -0.2, mean, mean + 0.01, log_scale, log_scale + 0.1], requires_grad=True)
    log_probs = layer.log_probs(state)
    assert log_probs.isfinite().all()
    assert torch.allclose(log_probs.exp().sum(), torch.tensor(1.0), atol=1e-4)
    layer(state.expand(levels, -1), torch.arange(levels)).sum().backward()
    assert state.grad.isfinite().all()


@pytest.mark.parametrize(("level", "mean", "log_scale"), [(200, -0.9, -5.0), (3, 0.9, -4.0), (255, -1, -5)])
def test_what_a_difference_loses_in_single_precision_is_kept(level, mean, log_scale):
    bounds = torch.tensor([2 * level - 256, math.inf if level == 255 else 2 * level - 254]) / 255
    assert ((bounds - mean) * math.exp(-log_scale)).sigmoid().diff() == 0
    # Of the two, the one that is near zero, and so precise.
    tail = stats.logistic.sf if level > 127 else stats.logistic.cdf
    exact = math.log(abs(float(tail(bounds.double().numpy(), loc=mean, scale=math.exp(log_scale)) @ [1, -1])))
    for dtype in (torch.float32, torch.float64):
        state = torch.tensor([0.0, mean, log_scale], dtype=dtype)
        found = -transparent(256, 1, dtype)(state, torch.tensor(level))
        assert found.item() == pytest.approx(exact, rel=1e-5)


# Both


@pytest.mark.parametrize(
    ("symbols", "log_scale"), [(2, None), (12, None), (257, None), (2, -1.0), (16, -2.0), (256, -4.0)]
)
def test_samples_have_the_probabilities(symbols, log_scale):
    """A chi-squared test at a level of 1e-6, on symbols that are expected ten times or more and on all others."""
    layer, count = transparent(symbols, 0 if log_scale is None else 3), 40_000
    state = 2 * torch.randn(symbols, dtype=torch.float64, generator=seeded(symbols))
    if log_scale is not None:
        state = parameters(components=3, seed=symbols, log_scale=log_scale)
    drawn = layer.sample(state.expand(count, -1), seeded(5))
    assert drawn.dtype == torch.int64
    expected = count * layer.log_probs(state).exp()
    found = torch.bincount(drawn, minlength=symbols).double()
    often = expected >= 10
    pairs = [torch.cat((x[often], x[~often].sum().view(1))) for x in (found, expected)]
    found, expected = (x[pairs[1] >= 10] for x in pairs)
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum().item(), len(expected) - 1) > 1e-6


@pytest.mark.parametrize("components", [0, 4])
def test_a_seed_decides_the_samples_of_any_shape_and_extreme_ones_stay_symbols(components):
    layer = transparent(256, components, torch.float32)
    h = 30 * torch.randn(2, 50, layer.projection.in_features)
    first, second = (layer.sample(h, seeded(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (2, 50)
    assert 0 <= first.min() <= first.max() <= 255
    assert not torch.equal(layer.sample(h / 30, seeded(2)), layer.sample(h / 30, seeded(1)))


@pytest.mark.parametrize("layer", [CategoricalOutput(width=16, symbols=9), MixtureOfLogistics(width=16, levels=9)])
def test_half_precision_states_are_judged_in_single_precision(layer):
    layer = layer.bfloat16()
    h, targets = torch.randn(5, 16).bfloat16(), torch.randint(9, (5,))
    nats, log_probs = layer(h, targets), layer.log_probs(h)
    assert nats.dtype == log_probs.dtype == torch.float32
    assert torch.allclose(log_probs.exp().sum(-1), torch.ones(5), atol=1e-6)
    assert torch.allclose(nats, layer.float()(h.float(), targets), rtol=0.05, atol=0.02)
