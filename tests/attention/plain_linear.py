"""What tests of linear attention need: its inputs, its forms, and its equation a pair of positions at a time."""

import pytest
import torch

from shared.attention.linear import (
    State,
    chunkwise_linear_attention,
    parallel_linear_attention,
    recurrent_linear_attention,
)

B, H, T, C, V = 2, 3, 7, 4, 5
F64 = torch.float64
EXACT = {"atol": 1e-11, "rtol": 1e-11}
FORMS = [parallel_linear_attention, chunkwise_linear_attention, recurrent_linear_attention]

forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.split("_")[0])
scaled = pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])


def parts(scaled=False, *, positions=T, dtype=F64):
    """q, k and v, and the keys' scales where they are to have them."""
    q, k = torch.rand(2, B, H, positions, C, dtype=dtype)
    v = torch.randn(B, H, positions, V, dtype=dtype)
    scales = {"log_scale": 2 * torch.randn(B, H, positions, dtype=dtype)} if scaled else {}
    return (q, k, v), scales


def earlier(scaled=False, dtype=F64):
    return State(torch.rand(B, H, C, V + 1, dtype=dtype), torch.randn(B, H, dtype=dtype) if scaled else None)


def by_hand(q, k, v, log_scale=None, *, causal=True):
    """Σ_j w_ij v_j / Σ_j w_ij, a pair at a time."""
    result = torch.zeros(*q.shape[:3], v.size(-1), dtype=q.dtype)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        seen = range(i + 1 if causal else k.size(2))
        scale = [1.0 if log_scale is None else log_scale[b, h, j].exp() for j in seen]
        w = [(q[b, h, i] * k[b, h, j]).sum() * scale[j] for j in seen]
        result[b, h, i] = sum(w[j] * v[b, h, j] for j in seen) / sum(w)
    return result
