"""The masked softmax, a distribution over what may be attended to, and the additive attention that rests on it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.additive import AdditiveAttention
from shared.attention.softmax import masked_softmax


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_it_is_the_softmax_of_the_positions_left(data):
    length = data.draw(st.integers(1, 8))
    numbers = st.floats(-50, 50, allow_nan=False)
    scores = torch.tensor(data.draw(st.lists(numbers, min_size=length, max_size=length)), dtype=torch.float64)
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=length, max_size=length)))
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights[mask], torch.softmax(scores[mask], -1), atol=1e-12, rtol=1e-12)
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_row_without_positions_gives_zeros_and_zero_gradients(dtype):
    scores = torch.randn(3, 4, dtype=dtype, requires_grad=True)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    weights = masked_softmax(scores, mask)
    (weights * torch.randn_like(weights)).sum().backward()
    assert weights.dtype == dtype
    assert (weights[1] == 0).all()
    assert (scores.grad[1] == 0).all()
    assert scores.grad.isfinite().all()
    torch.testing.assert_close(weights.float().sum(-1), torch.tensor([1.0, 0.0, 1.0]), atol=1e-2, rtol=0)


def test_extreme_scores_stay_finite():
    scores = torch.tensor([[3e38, -3e38, 0.0], [-3e38, -3e38, -3e38]])
    mask = torch.tensor([[True, True, False], [True, False, True]])
    assert masked_softmax(scores, mask).tolist() == [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]


def test_the_gradient_is_right():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True, True], [False, False, False, True]]).unsqueeze(1)
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask), (scores,))


F64 = torch.float64


def attention(n=3, m=4, a=5):
    module = AdditiveAttention(query_size=n, key_size=m, alignment_size=a).to(F64)
    torch.nn.init.normal_(module.v_a)
    module.w_a.data.normal_()
    module.u_a.data.normal_()
    return module


def test_a_case_worked_by_hand():
    module = AdditiveAttention(query_size=1, key_size=1, alignment_size=1).to(F64)
    for parameter, value in ((module.w_a, 1.0), (module.u_a, 2.0), (module.v_a, 3.0)):
        parameter.data.fill_(value)
    queries, annotations = torch.tensor([[[0.5]]], dtype=F64), torch.tensor([[[0.0], [-0.25]]], dtype=F64)
    energies = [3 * math.tanh(0.5), 3 * math.tanh(0.0)]
    share = math.exp(energies[0]) / (math.exp(energies[0]) + math.exp(energies[1]))
    weights = module(queries, module.keys(annotations), torch.tensor([[True, True]]))
    assert weights.flatten().tolist() == pytest.approx([share, 1 - share], abs=1e-14)


def test_large_energies_neither_overflow_nor_lose_their_gradient():
    module = attention()
    module.v_a.data.mul_(1e4)
    queries = torch.randn(2, 3, 3, dtype=F64).mul_(1e3).requires_grad_()
    keys = torch.randn(2, 6, 5, dtype=F64, requires_grad=True)
    weights = module(queries, keys, torch.ones(2, 6, dtype=torch.bool))
    weights.square().sum().backward()
    assert all(tensor.isfinite().all() for tensor in (weights, queries.grad, keys.grad, module.w_a.grad))


def test_the_initial_attention_is_uniform_and_its_weights_are_small():
    module = AdditiveAttention(query_size=200, key_size=300, alignment_size=100)
    mask = torch.tensor([[True] * 4 + [False] * 2])
    weights = module(torch.randn(1, 2, 200), module.keys(torch.randn(1, 6, 300)), mask)
    assert weights.tolist() == [[[0.25] * 4 + [0.0] * 2] * 2]
    for weight in (module.w_a.detach(), module.u_a.detach()):
        assert float(weight.std()) == pytest.approx(0.001, rel=5 / math.sqrt(2 * weight.numel()))
        assert abs(float(weight.mean())) < 5 * 0.001 / math.sqrt(weight.numel())
    module.reset_parameters(0.5)
    assert float(module.w_a.detach().std()) == pytest.approx(0.5, rel=0.05)
