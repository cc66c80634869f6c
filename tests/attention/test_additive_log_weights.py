"""The weights of additive attention as logarithms against their equation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.show_attend_tell.attention import log_weights
from shared.attention.additive_log_weights import additive_log_weights

F64 = torch.float64
many = settings(deadline=None, max_examples=30)
sizes = {
    "batch": st.integers(1, 3), "queries": st.integers(1, 3), "length": st.integers(1, 5), "width": st.integers(1, 5),
    "seed": st.integers(0, 2**31),
}  # fmt: skip


def case(batch=2, queries=3, length=4, width=5, seed=1, *, dtype=F64):
    """A query (B, Q, A), keys (B, L, A) and u (A,), all wanting gradients."""
    torch.manual_seed(seed)
    shapes = (batch, queries, width), (batch, length, width), (width,)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-11), (torch.float32, 1e-4)])
@many
@given(**sizes)
def test_values_and_gradients_are_those_of_the_equation(dtype, tolerance, **size):
    tensors = case(**size, dtype=dtype)
    found = [(out, *torch.autograd.grad(out, tensors, torch.linspace(-1, 2, out.numel(), dtype=dtype).view_as(out)))
             for out in (f(*tensors) for f in (additive_log_weights, log_weights))]  # fmt: skip
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def test_the_hand_written_backward_pass_passes_gradcheck():
    assert torch.autograd.gradcheck(additive_log_weights, tuple(case()))


@pytest.mark.parametrize("frozen", range(3))
def test_an_input_that_wants_no_gradient_does_not_hinder_the_others(frozen):
    tensors = case()
    tensors[frozen] = tensors[frozen].detach()
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    ours, theirs = (
        torch.autograd.grad(f(*tensors).square().sum(), wanted) for f in (additive_log_weights, log_weights)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-11)


def test_weights_add_up_to_one_and_extreme_energies_stay_finite():
    query, keys, u = case(dtype=torch.float32)
    out = additive_log_weights(query, keys, 1e4 * u)
    torch.testing.assert_close(out.exp().sum(-1), torch.ones(2, 3))
    (gradient,) = torch.autograd.grad(out.sum(), query)
    assert out.isfinite().all()
    assert gradient.isfinite().all()


def test_autocast_does_not_reach_in_and_inputs_of_lower_precision_are_taken():
    query, keys, u = case(dtype=torch.float32)
    low = keys.detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = additive_log_weights(query, keys, u)
        of_low = additive_log_weights(query, low, u)
    assert torch.equal(mixed, additive_log_weights(query, keys, u))
    assert torch.equal(of_low, additive_log_weights(query, low.float(), u))
    of_low.square().sum().backward()
    assert (query.grad.dtype, low.grad.dtype) == (torch.float32, torch.bfloat16)
