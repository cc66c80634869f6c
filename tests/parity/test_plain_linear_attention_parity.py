"""Our causal attention against the outer products that public programs sum up, which benchmarks compare it with."""

import pytest
import torch

from benchmarks.steps import summed_outer_products
from shared.attention.linear import chunkwise_linear_attention

F64 = torch.float64


@pytest.mark.parametrize("pieces", [1, 5, 128])
def test_values_and_gradients_are_those_of_the_outer_products(pieces):
    q, k = torch.rand(2, 2, 3, 70, 4, dtype=F64).add(0.1).requires_grad_().unbind()
    v = torch.randn(2, 3, 70, 5, dtype=F64, requires_grad=True)
    cotangent = torch.randn_like(v)
    expected = summed_outer_products(q, k, v, pieces=pieces)
    ours, _ = chunkwise_linear_attention(q, k, v, chunk=16)
    torch.testing.assert_close(ours, expected, atol=1e-11, rtol=1e-11)
    ours_d, theirs_d = (torch.autograd.grad(out, (q, k, v), cotangent) for out in (ours, expected))
    torch.testing.assert_close(ours_d, theirs_d, atol=1e-10, rtol=1e-10)
