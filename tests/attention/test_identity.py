"""Attention that costs nothing: every position gets its own value, through all projections."""

import pytest
import torch

from shared.attention.identity import IdentityAttention

B, T, D, H, K, V = 2, 5, 8, 4, 3, 6


@pytest.fixture
def case():
    """A module, and what it reads."""
    attention = IdentityAttention(query_size=D, heads=H, key_size=K, value_size=V, bias=True)
    return attention.double(), torch.randn(B, T, D, dtype=torch.float64)


def test_every_position_gets_its_value(case):
    attention, x = case
    out, none = attention(x, attention.project(x), causal=True)
    torch.testing.assert_close(out, attention.w_o(attention.w_kv(x)[..., H * K :]))
    assert none is None


def test_its_weights_say_so(case):
    attention, x = case
    out, weights = attention(x, (memory := attention.project(x)), weights=True)
    torch.testing.assert_close(out, attention.w_o((weights @ memory[1]).transpose(1, 2).flatten(2)))
    assert weights.shape == (B, H, T, T)


def test_all_projections_are_made_and_only_those_that_count_are_learned(case):
    attention, x = case
    made = []
    for linear in (attention.w_q, attention.w_kv, attention.w_o):
        linear.register_forward_hook(lambda linear, *_: made.append(linear))
    attention(x, attention.project(x))[0].square().sum().backward()
    assert set(made) == {attention.w_q, attention.w_kv, attention.w_o}
    assert attention.w_q.weight.grad is None
    w_k, w_v = attention.w_kv.weight.grad.split((H * K, H * V))
    assert not w_k.any()
    assert w_v.all()
