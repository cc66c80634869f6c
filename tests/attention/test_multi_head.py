"""Multi-head attention is attention H times over, each head in a subspace of its own (section 3.2.2)."""

import math

import torch

from shared.attention.multi_head import MultiHeadAttention
from tests.checklist import spread

B, Q, S, D, M, H, K, V = 3, 5, 6, 8, 7, 4, 3, 5
F64 = torch.float64
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
