"""Multi-head linear attention is linear attention H times over."""

import pytest
import torch

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import linear_attention_weights
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from tests.checklist import F64, spread

B, T, D, H, K, V = 3, 6, 8, 4, 3, 5
EXACT = {"atol": 1e-12, "rtol": 1e-12}
WORDS = torch.arange(T) < torch.tensor([6, 4, 0]).unsqueeze(1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [None, WORDS])
def test_it_is_the_equation_head_by_head_with_weights_and_without(causal, bias, mask):
    sizes = {"query_size": D, "heads": H, "key_size": K, "value_size": V, "bias": bias}
    module = spread(LinearMultiHeadAttention(features=EluPlusOne(), **sizes), 1.0)
    x = torch.randn(B, T, D, dtype=F64)
    assert [linear.bias is not None for linear in (module.w_q, module.w_kv, module.w_o)] == [bias] * 3
    memory = module.project(x)
    found, weights = module(x, memory, mask=mask, causal=causal, weights=True)
    same, none = module(x, memory, mask=mask, causal=causal)
    assert none is None
    torch.testing.assert_close(same, found, **EXACT)
    heads = []
    w_k, w_v = module.w_kv(x).split((H * K, H * V), dim=-1)
    for i in range(H):
        q, k = module.w_q(x)[..., i * K : (i + 1) * K], w_k[..., i * K : (i + 1) * K]
        q, k = ((torch.nn.functional.elu(y) + 1).unsqueeze(1) for y in (q, k))
        k = k if mask is None else k * mask[:, None, :, None]
        a = linear_attention_weights(q, k, causal=causal).squeeze(1)
        torch.testing.assert_close(weights[:, i], a, **EXACT)
        heads.append(a @ w_v[..., i * V : (i + 1) * V])
    torch.testing.assert_close(found, module.w_o(torch.cat(heads, dim=-1)), **EXACT)
