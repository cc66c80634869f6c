"""Multi-head linear attention is linear attention H times over, in one pass, by segments or step by step."""

import pytest
import torch

from shared.attention.feature_maps import EluPlusOne, ReLU
from shared.attention.linear import linear_attention
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.linear_naive import linear_attention_weights

B, N, T, D, M, H, K, V = 3, 5, 6, 8, 7, 4, 3, 5
F64 = torch.float64
EXACT = {"atol": 1e-12, "rtol": 1e-12}
causally = pytest.mark.parametrize("causal", [False, True])


def attention(dtype=F64, **changes):
    sizes = {
        "query_size": D,
        "heads": H,
        "key_size": K,
        "value_size": V,
        "features": EluPlusOne(),
        "chunk": 4,
    }
    module = LinearMultiHeadAttention(**sizes | changes).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def words():
    return torch.arange(T) < torch.tensor([6, 4, 0]).unsqueeze(1)


@causally
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_the_equation_head_by_head(causal, bias):
    module, x = attention(bias=bias), torch.randn(B, T, D, dtype=F64)
    for mask in (None, words()):
        found, weights = module(x, module.project(x, mask), causal=causal, weights=True)
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


@causally
def test_asking_for_weights_changes_nothing_else(causal):
    module, x = attention(), torch.randn(B, T, D, dtype=F64)
    for mask in (None, words()):
        memory = module.project(x, mask)
        found, none = module(x, memory, causal=causal)
        assert none is None
        torch.testing.assert_close(found, module(x, memory, causal=causal, weights=True)[0], **EXACT)


def test_it_attends_to_a_memory_of_another_length_and_width():
    module = attention(memory_size=M)
    x, memory = torch.randn(B, N, D, dtype=F64), torch.randn(B, T, M, dtype=F64)
    keys, v = module.project(memory)
    found, weights = module(x, (keys, v), weights=True)
    expected = linear_attention(module.queries(x), keys.values, v)
    torch.testing.assert_close(found, module.w_o(expected.transpose(1, 2).flatten(2)), **EXACT)
    assert weights.shape == (B, H, N, T)


def test_padding_counts_nothing():
    module, x = attention(), torch.randn(B, T, D, dtype=F64)
    found, _ = module(x, module.project(x, words()))
    for i, count in enumerate([6, 4]):
        one = x[i : i + 1]
        expected, _ = module(one, module.project(one[:, :count]))
        torch.testing.assert_close(found[i : i + 1], expected, **EXACT)
    assert not found[2].any()


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_segments_in_turn_are_one_pass(size):
    module, x = attention(), torch.randn(B, T, D, dtype=F64)
    for mask in (None, words()):
        expected, _ = module(x, module.project(x, mask), causal=True)
        state, out = None, []
        for begin in range(0, T, size):
            here = slice(begin, begin + size)
            y, state = module.segment(x[:, here], state, None if mask is None else mask[:, here])
            out.append(y)
        torch.testing.assert_close(torch.cat(out, dim=1), expected, **EXACT)


def test_steps_are_one_pass_and_may_follow_one():
    module, x = attention(features=ReLU()), torch.randn(B, T, D, dtype=F64)
    expected, _ = module(x, module.project(x), causal=True)
    for prompt in range(T):
        out, state = [], None
        if prompt:
            first, state = module.segment(x[:, :prompt])
            out = list(first.unbind(1))
        for t in range(prompt, T):
            y, state = module.step(x[:, t], state)
            out.append(y)
        torch.testing.assert_close(torch.stack(out, dim=1), expected, **EXACT)


def test_nothing_of_the_future_is_seen():
    module, x = attention(torch.float32), torch.randn(B, T, D)
    expected, _ = module(x, module.project(x), causal=True)
    for t in range(1, T):
        changed = torch.cat((x[:, :t], 100 * torch.randn_like(x[:, t:])), dim=1)
        assert torch.equal(module(changed, module.project(changed), causal=True)[0][:, :t], expected[:, :t])


@causally
def test_the_gradient_is_right_and_reaches_every_parameter(causal):
    module, x = attention(bias=True), torch.randn(1, T, D, dtype=F64, requires_grad=True)
    inputs = (x, *module.parameters())  # which are changed in place
    assert torch.autograd.gradcheck(lambda *_: module(x, module.project(x), causal=causal)[0], inputs, fast_mode=True)
    gradients = torch.autograd.grad(module(x, module.project(x), causal=causal)[0].square().sum(), inputs)
    assert all(gradient.any() for gradient in gradients)


def test_it_has_the_papers_parameters():
    sizes = {"query_size": 256, "heads": 8, "key_size": 32, "value_size": 32}
    of_layer = 789_760 - (2 * 256 * 1024 + 1024 + 256) - 2 * 2 * 256  # less feed-forward network and norms
    module = attention(**sizes, bias=True)
    assert sum(p.numel() for p in module.parameters()) == of_layer
    assert sum(p.numel() for p in attention(**sizes).parameters()) == of_layer - 4 * 256


def test_a_state_has_the_size_the_paper_saves_by():
    module = attention(query_size=256, heads=8, key_size=32, value_size=32)
    for positions in (1, 9):
        _, state = module.segment(torch.randn(1, positions, 256, dtype=F64))
        assert state.sums.numel() == 8 * (32 * 32 + 32)


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


def test_it_begins_as_other_attentions_do():
    module = LinearMultiHeadAttention(
        query_size=64, heads=4, key_size=16, value_size=16, features=EluPlusOne(), bias=True
    )
    w_k, w_v = module.w_kv.weight.chunk(2)
    for w in (module.w_q.weight, w_k, w_v, module.w_o.weight):
        bound = (6 / 128) ** 0.5
        assert w.abs().amax() <= bound
        assert w.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
    assert not any(linear.bias.any() for linear in (module.w_q, module.w_kv, module.w_o))
