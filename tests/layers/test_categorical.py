import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from shared.layers.outputs import CategoricalOutput


def transparent(symbols, dtype=torch.float64):
    """A layer whose states are the logits themselves."""
    layer = CategoricalOutput(width=symbols, symbols=symbols).to(dtype)
    nn.init.eye_(layer.projection.weight)
    nn.init.zeros_(layer.projection.bias)
    return layer


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 30), st.lists(st.integers(1, 4), max_size=3), st.integers(0, 9999))
def test_it_is_the_softmax_of_a_linear_map(symbols, shape, seed):
    torch.manual_seed(seed)
    layer = CategoricalOutput(width=5, symbols=symbols).double()
    h, targets = torch.randn(*shape, 5, dtype=torch.float64), torch.randint(symbols, shape)
    exponentials = (h @ layer.projection.weight.T + layer.projection.bias).exp()
    probs = exponentials / exponentials.sum(-1, keepdim=True)
    log_probs = layer.log_probs(h)
    assert log_probs.shape == (*shape, symbols)
    assert torch.allclose(log_probs.exp(), probs, atol=1e-12)
    nats = layer(h, targets)
    assert nats.shape == targets.shape
    assert torch.allclose((-nats).exp(), probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1), atol=1e-12)


def test_nats_of_a_layer_that_knows_nothing_are_those_of_all_symbols_alike():
    layer, targets = transparent(12), torch.randint(12, (3, 4))
    assert torch.allclose(layer(torch.zeros(3, 4, 12).double(), targets), torch.tensor(math.log(12)).double())


def test_large_logits_give_finite_nats_and_gradients():
    h = torch.tensor([1e4, -1e4, 0.0]).expand(3, -1).clone().requires_grad_()
    nats = transparent(3, torch.float32)(h, torch.arange(3))
    assert nats.tolist() == [0, 2e4, 1e4]
    nats.sum().backward()
    assert h.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences():
    layer = CategoricalOutput(width=4, symbols=6).double()
    h = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(6, (2, 3))
    assert torch.autograd.gradcheck(lambda h: layer(h, targets), (h,))


@pytest.mark.parametrize("symbols", [2, 12, 257])
def test_samples_have_the_probabilities(symbols):
    """A chi-squared test at a level of 1e-6, on symbols that are expected ten times or more and on all others."""
    layer, count = transparent(symbols), 40_000
    state = 2 * torch.randn(symbols, dtype=torch.float64, generator=seeded(symbols))
    drawn = layer.sample(state.expand(count, -1), seeded(5))
    assert drawn.dtype == torch.int64
    expected = count * layer.log_probs(state).exp()
    found = torch.bincount(drawn, minlength=symbols).double()
    often = expected >= 10
    pairs = [torch.cat((x[often], x[~often].sum().view(1))) for x in (found, expected)]
    found, expected = (x[pairs[1] >= 10] for x in pairs)
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum().item(), len(expected) - 1) > 1e-6


def test_a_seed_decides_the_samples_of_any_shape():
    layer, h = transparent(7), torch.randn(2, 5, 7, dtype=torch.float64)
    first, second = (layer.sample(h, seeded(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (2, 5)
    assert not torch.equal(layer.sample(h, seeded(2)), first)


def test_what_has_next_to_no_probability_is_not_drawn():
    layer = transparent(5, torch.float32)
    state = torch.tensor([0.0, -1e30, 0.0, -1e9, -200.0])
    assert set(layer.sample(state.expand(5000, -1), seeded(1)).tolist()) == {0, 2}


def test_half_precision_states_are_judged_in_single_precision():
    layer = CategoricalOutput(width=16, symbols=9).bfloat16()
    h, targets = torch.randn(5, 16), torch.randint(9, (5,))
    nats, log_probs = layer(h.bfloat16(), targets), layer.log_probs(h.bfloat16())
    assert nats.dtype == log_probs.dtype == torch.float32
    assert torch.allclose(log_probs.exp().sum(-1), torch.ones(5), atol=1e-6)
    assert torch.allclose(nats, layer.float()(h.bfloat16().float(), targets), rtol=0.05, atol=0.02)
