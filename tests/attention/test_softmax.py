"""The masked softmax, the additive attention that rests on it, and attention H times over, each head in a subspace."""

import math

import pytest
import torch

from shared.attention.additive import AdditiveAttention
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.softmax import masked_softmax
from tests.checklist import F64, spread


def test_extreme_scores_stay_finite():
    scores = torch.tensor([[3e38, -3e38, 0.0], [-3e38, -3e38, -3e38]])
    mask = torch.tensor([[True, True, False], [True, False, True]])
    assert masked_softmax(scores, mask).tolist() == [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]


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


B, Q, S, D, M, H, K, V = 3, 5, 6, 8, 7, 4, 3, 5
EXACT = {"atol": 1e-12, "rtol": 0}


def attention(**changes):
    sizes = {"query_size": D, "memory_size": M, "heads": H, "key_size": K, "value_size": V}
    return spread(MultiHeadAttention(**sizes | changes), 1.0)


def inputs():
    return torch.randn(B, Q, D, dtype=F64), torch.randn(B, S, M, dtype=F64)


def test_scores_without_the_scale_are_root_k_times_as_large():
    scaled, unscaled = attention(), attention(scaled=False)
    unscaled.load_state_dict(scaled.state_dict())
    with torch.no_grad():
        unscaled.w_q.weight /= math.sqrt(K)
    x, memory = inputs()
    outputs = [module(x, module.project(memory), weights=True) for module in (scaled, unscaled)]
    torch.testing.assert_close(*outputs, **EXACT)


def test_each_matrix_is_initialised_by_its_own_size():
    """Xavier's bound √(6 / (in + out)) of W^Q, W^K, W^V and W^O each, though two of them are one parameter."""
    module = MultiHeadAttention(query_size=64, memory_size=48, heads=4, key_size=8, value_size=96)
    w_k, w_v = module.w_kv.weight.split((32, 384))
    for w in (module.w_q.weight, w_k, w_v, module.w_o.weight):
        bound = math.sqrt(6 / sum(w.shape))
        assert 0.95 * bound < w.abs().max() <= bound
