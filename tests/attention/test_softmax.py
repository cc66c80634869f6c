"""The masked softmax, a distribution over what may be attended to, and the additive attention that rests on it."""

import math

import pytest
import torch

from shared.attention.additive import AdditiveAttention
from shared.attention.softmax import masked_softmax


def test_extreme_scores_stay_finite():
    scores = torch.tensor([[3e38, -3e38, 0.0], [-3e38, -3e38, -3e38]])
    mask = torch.tensor([[True, True, False], [True, False, True]])
    assert masked_softmax(scores, mask).tolist() == [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]


F64 = torch.float64


def test_a_case_worked_by_hand():
    module = AdditiveAttention(query_size=1, key_size=1, alignment_size=1).to(F64)
    for parameter, value in ((module.w_a, 1.0), (module.u_a, 2.0), (module.v_a, 3.0)):
        parameter.data.fill_(value)
    queries, annotations = torch.tensor([[[0.5]]], dtype=F64), torch.tensor([[[0.0], [-0.25]]], dtype=F64)
    energies = [3 * math.tanh(0.5), 3 * math.tanh(0.0)]
    share = math.exp(energies[0]) / (math.exp(energies[0]) + math.exp(energies[1]))
    weights = module(queries, module.keys(annotations), torch.tensor([[True, True]]))
    assert weights.flatten().tolist() == pytest.approx([share, 1 - share], abs=1e-14)


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
