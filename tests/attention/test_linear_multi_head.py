"""Multi-head linear attention is linear attention H times over."""

import pytest
import torch

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import linear_attention_weights
from shared.attention.linear_multi_head import LinearMultiHeadAttention

B, N, T, D, M, H, K, V = 3, 5, 6, 8, 7, 4, 3, 5
F64 = torch.float64
EXACT = {"atol": 1e-12, "rtol": 1e-12}
WORDS = torch.arange(T) < torch.tensor([6, 4, 0]).unsqueeze(1)
causally = pytest.mark.parametrize("causal", [False, True])


def attention(dtype=F64, **changes):
    sizes = {"query_size": D, "heads": H, "key_size": K, "value_size": V, "features": EluPlusOne()}
    module = LinearMultiHeadAttention(**sizes | changes).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


@causally
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [None, WORDS])
def test_it_is_the_equation_head_by_head_with_weights_and_without(causal, bias, mask):
    module, x = attention(bias=bias), torch.randn(B, T, D, dtype=F64)
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


def test_it_has_the_papers_parameters():
    sizes = {"query_size": 256, "heads": 8, "key_size": 32, "value_size": 32}
    of_layer = 789_760 - (2 * 256 * 1024 + 1024 + 256) - 2 * 2 * 256  # less feed-forward network and norms
    module = attention(**sizes, bias=True)
    assert sum(p.numel() for p in module.parameters()) == of_layer
    assert sum(p.numel() for p in attention(**sizes).parameters()) == of_layer - 4 * 256


@pytest.mark.parametrize("gradients", [True, False])
def test_autocast_to_bfloat16_is_near(gradients):
    module, x = attention(torch.float32), torch.randn(B, T, D)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.3)
    expected, _ = module(x, module.project(x), causal=True)
    with torch.set_grad_enabled(gradients), torch.autocast("cpu", torch.bfloat16):
        found, _ = module(x, module.project(x), causal=True)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
