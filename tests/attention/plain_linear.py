"""What tests of linear attention need: its inputs, its forms, and its equation a pair of positions at a time."""

import pytest
import torch

from shared.attention import linear

B, H, T, C, V = 2, 3, 7, 4, 5
F64 = torch.float64
EXACT = {"atol": 1e-11, "rtol": 1e-11}
FORMS = [linear.parallel_linear_attention, linear.chunkwise_linear_attention, linear.recurrent_linear_attention]

forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.split("_")[0])
scaled = pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])


def parts(scaled=False, *, positions=T, dtype=F64):
    """q, k and v, and the keys' scales where they are to have them."""
    q, k = torch.rand(2, B, H, positions, C, dtype=dtype)
    v = torch.randn(B, H, positions, V, dtype=dtype)
    scales = {"log_scale": 2 * torch.randn(B, H, positions, dtype=dtype)} if scaled else {}
    return (q, k, v), scales


def earlier(scaled=False, dtype=F64):
    return linear.State(torch.rand(B, H, C, V + 1, dtype=dtype), torch.randn(B, H, dtype=dtype) if scaled else None)
