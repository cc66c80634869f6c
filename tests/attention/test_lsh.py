"""Attention by hashing is attention among what its rounds find."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.lsh import LSHSelfAttention, lsh_attention, lsh_attention_weights, lsh_buckets

B, H, K, V = 2, 3, 4, 5
F64 = torch.float64
EXACT = {"atol": 1e-10, "rtol": 1e-10}
many = settings(max_examples=40)
seeds = st.integers(0, 10**6)
kinds = pytest.mark.parametrize("kind", [{}, {"causal": True}, {"causal": True, "published": True}], ids=str)


def parts(positions, *, rounds=2, buckets=4, dtype=F64):
    qk, v = torch.randn(B, H, positions, K, dtype=dtype), torch.randn(B, H, positions, V, dtype=dtype)
    return qk, v, lsh_buckets(qk, torch.randn(H, rounds, K, buckets // 2))


def by_hand(qk, v, buckets, *, chunk, causal=False, published=False):
    """The definition of one head and sequence, with lists; (T, V)."""
    size, found = len(qk), [set() for _ in qk]
    for bucket in buckets.tolist():
        order = sorted(range(size), key=lambda i: (bucket[i], i))
        for i, j in torch.cartesian_prod(torch.arange(size), torch.arange(size)).tolist():
            apart = order.index(i) - order.index(j)
            chunks = order.index(i) // chunk - order.index(j) // chunk
            near = apart <= chunk if causal and not published else 0 <= chunks <= 1
            if i != j and bucket[i] == bucket[j] and near and not (causal and j > i):
                found[i].add(j)
    rows = []
    for i, keys in enumerate(found):
        w = {j: (qk[i] @ qk[j] / qk[j].norm() / K**0.5).exp() for j in keys or {i}}
        rows.append(sum(w[j] * v[j] for j in w) / sum(w.values()))
    return torch.stack(rows)


# The definition


@kinds
@many
@given(positions=st.integers(1, 9), chunk=st.integers(1, 6), rounds=st.integers(1, 3), seed=seeds)
def test_it_is_the_definition(kind, positions, chunk, rounds, seed):
    torch.manual_seed(seed)
    qk, v, buckets = parts(positions, rounds=rounds)
    found = lsh_attention(qk, v, buckets, chunk=chunk, **kind)
    weights = lsh_attention_weights(qk, buckets, chunk=chunk, **kind)
    torch.testing.assert_close(found, weights @ v, **EXACT)
    expected = by_hand(qk[1, 2], v[1, 2], buckets[1, 2], chunk=chunk, **kind)
    torch.testing.assert_close(found[1, 2], expected, **EXACT)


# Hashing


def test_a_hash_is_the_nearest_of_the_rotated_axes():
    x = torch.randn(B, H, 11, K)
    rotations = torch.randn(H, 2, K, 3)
    buckets = lsh_buckets(x, rotations)
    assert buckets.shape == (B, H, 2, 11)
    for h, r in ((0, 1), (2, 0)):
        rotated = x[1, h] @ rotations[h, r]
        assert buckets[1, h, r].tolist() == torch.cat((rotated, -rotated), -1).argmax(-1).tolist()
    assert torch.equal(lsh_buckets(3 * x, rotations), buckets)
    assert torch.equal(lsh_buckets(-x, rotations), (buckets + 3) % 6)  # the opposite bucket


# The module


def module(**changes):
    sizes = {"width": 6, "heads": H, "key_size": K, "value_size": V, "buckets": 4, "chunk": 3, "rounds": 2}
    return LSHSelfAttention(**sizes | changes)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_module_gives_its_weights_and_the_same_result_without(causal, bias):
    attention, x = module(bias=bias).double(), torch.randn(B, 10, 6, dtype=F64)
    mask = torch.arange(10) < torch.tensor([[10], [7]])
    out, none = attention(x, mask=mask, causal=causal)
    same, weights = attention(x, mask=mask, causal=causal, weights=True)
    assert none is None
    torch.testing.assert_close(out, same, **EXACT)
    torch.testing.assert_close(weights.sum(-1), mask[:, None].expand(-1, H, -1).double(), **EXACT)
    assert sum(p.numel() for p in attention.parameters()) == 6 * H * (K + 2 * V) + bias * (H * (K + V) + 6)


def test_autocast_reaches_in_and_does_no_harm():
    attention, x = module(buckets=2, chunk=10, rounds=2), torch.randn(B, 10, 6)
    # One of a pair of buckets for all, so that rounding moves nothing from one to another.
    attention.rotations.zero_()
    expected, _ = attention(x, causal=True)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attention(x, causal=True)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
