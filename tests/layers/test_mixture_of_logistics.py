import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from shared.layers.outputs import MixtureOfLogistics


def transparent(levels, components, dtype=torch.float64):
    """A layer whose states are the parameters themselves: logits, means and logarithms of scales."""
    layer = MixtureOfLogistics(width=3 * components, levels=levels, components=components).to(dtype)
    nn.init.eye_(layer.projection.weight)
    nn.init.zeros_(layer.projection.bias)
    return layer


def parameters(*shape, components, seed, log_scale=-2.0):
    generator = torch.Generator().manual_seed(seed)
    logits, means, log_scales = torch.randn(3, *shape, components, generator=generator, dtype=torch.float64)
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
@settings(deadline=None, max_examples=60)
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


def test_the_outermost_levels_have_what_lies_beyond():
    layer = transparent(16, 1)
    for mean, level in ((-3.0, 0), (3.0, 15)):
        probs = layer.log_probs(torch.tensor([0.0, mean, -2.0], dtype=torch.float64)).exp()
        assert probs.argmax() == level
        assert probs[level] > 1 - 1e-5
    wide = layer.log_probs(torch.tensor([0.0, 0.0, 6.9], dtype=torch.float64)).exp()
    assert torch.allclose(wide[[0, 15]], torch.tensor(0.5, dtype=torch.float64), atol=1e-3)


def test_a_level_is_told_from_its_neighbours():
    layer = transparent(256, 1)
    for level in (0, 1, 100, 254, 255):
        state = torch.tensor([0.0, 2 * level / 255 - 1, -9.0], dtype=torch.float64)
        assert layer(state, torch.tensor(level)) < 0.03


def test_gradients_are_those_of_finite_differences():
    layer = MixtureOfLogistics(width=4, levels=8, components=3).double()
    h = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: layer(h, torch.arange(8)), (h,))


@pytest.mark.parametrize(("levels", "log_scale"), [(2, -1.0), (16, -2.0), (256, -4.0)])
def test_samples_have_the_probabilities(levels, log_scale):
    """A chi-squared test at a level of 1e-6, on levels that are expected ten times or more and on all others."""
    layer, count = transparent(levels, 3), 40_000
    state = parameters(components=3, seed=levels, log_scale=log_scale)
    drawn = layer.sample(state.expand(count, -1), torch.Generator().manual_seed(5))
    assert drawn.dtype == torch.int64
    expected = count * layer.log_probs(state).exp()
    found = torch.bincount(drawn, minlength=levels).double()
    often = expected >= 10
    pairs = [torch.cat((x[often], x[~often].sum().view(1))) for x in (found, expected)]
    found, expected = (x[pairs[1] >= 10] for x in pairs)
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum().item(), len(expected) - 1) > 1e-6


def test_a_seed_decides_the_samples_and_extreme_ones_stay_levels():
    layer = transparent(256, 4, torch.float32)
    state = 30 * torch.randn(2, 50, 12)
    first, second = (layer.sample(state, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (2, 50)
    assert 0 <= first.min() <= first.max() <= 255


def test_half_precision_states_are_judged_in_single_precision():
    layer = MixtureOfLogistics(width=16).bfloat16()
    h, targets = torch.randn(5, 16), torch.randint(256, (5,))
    nats = layer(h.bfloat16(), targets)
    assert nats.dtype == torch.float32
    assert torch.allclose(nats, layer.float()(h.bfloat16().float(), targets), rtol=0.05)


def test_it_learns_two_levels_at_once():
    """To half a chance each, and what the smallest scale leaves to the neighbours."""
    torch.manual_seed(0)
    layer = MixtureOfLogistics(width=4, components=4)
    h, targets = torch.ones(64, 4), torch.tensor([3, 180]).repeat(32)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=600)
    for _ in range(600):
        optimizer.zero_grad()
        loss = layer(h, targets).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    assert math.log(2) < loss < math.log(2) + 0.05


def test_the_layer_of_the_paper_has_so_many_weights():
    assert sum(p.numel() for p in MixtureOfLogistics(width=256).parameters()) == 256 * 30 + 30
