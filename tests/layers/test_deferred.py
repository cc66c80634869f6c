"""A weight whose gradient is made after the loop against plain products and plain autograd."""

import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.layers.deferred import DeferredWeight

F64 = torch.float64
many = settings(deadline=None, max_examples=30)
sizes = {
    "steps": st.integers(1, 6), "batch": st.integers(1, 3), "width": st.integers(1, 4), "fed": st.integers(0, 3),
    "seed": st.integers(0, 2**31),
}  # fmt: skip


def case(steps, batch, width, fed, seed=1, *, dtype=F64):
    """A weight (fed + width, width), inputs (T, B, fed) and a first state (B, width), all wanting gradients."""
    torch.manual_seed(seed)
    shapes = (fed + width, width), (steps, batch, fed), (batch, width)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def loop(product, x, h):
    """A recurrence, so that what a step returns matters to the steps after it: all states (T, B, width)."""
    states = []
    for x_t in x.unbind(0):
        h = torch.tanh(product(torch.cat((x_t, h), dim=1)))
        states.append(h)
    return torch.stack(states)


def both(tensors, select=slice(None)):
    """Values and gradients of the selected states, deferred and plain."""
    weight, x, h = tensors
    for product in (DeferredWeight(weight).product, lambda step: step @ weight):
        states = loop(product, x, h)[select]
        cotangent = torch.linspace(-1, 1, states.numel(), dtype=states.dtype).view_as(states)
        yield states, *torch.autograd.grad(states, tensors, cotangent, materialize_grads=True)


@many
@given(**sizes)
def test_values_and_gradients_are_those_of_plain_products(**size):
    for ours, theirs in zip(*both(case(**size)), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("select", [slice(0, 2), slice(1, 2), slice(4, None)])
def test_steps_that_the_loss_does_not_use_count_for_nothing(select):
    for ours, theirs in zip(*both(case(5, 3, 2, 2), select), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_a_step_between_others_may_go_unused():
    weight, x, _ = case(4, 3, 2, 3)
    deferred = DeferredWeight(weight[:3])
    used = [deferred.product(step) for step in x.unbind(0)][::3]
    (ours,) = torch.autograd.grad(sum(y.square().sum() for y in used), weight)
    (theirs,) = torch.autograd.grad(sum((step @ weight[:3]).square().sum() for step in (x[0], x[3])), weight)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_if_no_step_is_used_there_is_no_gradient():
    weight, x, _ = case(1, 2, 2, 2)
    deferred = DeferredWeight(weight[:2])
    deferred.product(x[0])
    assert torch.autograd.grad(x.sum(), [x, weight], allow_unused=True)[1] is None


def test_a_weight_that_wants_no_gradient_lets_those_of_the_inputs_through():
    weight, x, h = case(4, 3, 2, 2)
    frozen = weight.detach()
    deferred = DeferredWeight(frozen)
    ours, theirs = loop(deferred.product, x, h), loop(lambda step: step @ frozen, x, h)
    for mine, other in zip(
        torch.autograd.grad(ours.sum(), (x, h)), torch.autograd.grad(theirs.sum(), (x, h)), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-12, rtol=1e-12)
    assert deferred._steps.inputs == []


def test_inputs_that_want_no_gradient_do_not_hinder_the_weights():
    weight, x, h = case(4, 3, 2, 2)
    plain = [tensor.detach() for tensor in (x, h)]
    (ours,) = torch.autograd.grad(loop(DeferredWeight(weight).product, *plain).sum(), weight)
    (theirs,) = torch.autograd.grad(loop(lambda step: step @ weight, *plain).sum(), weight)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_without_gradients_nothing_is_kept():
    weight, x, h = case(4, 3, 2, 2)
    with torch.no_grad():
        deferred = DeferredWeight(weight)
        states = loop(deferred.product, x, h)
    assert torch.equal(states, loop(lambda step: step @ weight, x, h))
    assert deferred._steps.inputs == []


def test_after_the_backward_pass_nothing_is_kept_either():
    weight, x, h = case(4, 3, 2, 2)
    gc.collect()
    gc.disable()  # memory must come back at once, not when cycles are looked for
    try:
        deferred = DeferredWeight(weight)
        states = loop(deferred.product, x, h)
        assert len(deferred._steps.inputs) == 4
        states.sum().backward()
        assert not deferred._steps.inputs
        assert not deferred._steps.gradients
        gone = [weakref.ref(deferred), weakref.ref(deferred._weight)]
        del deferred, states
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_autocast_does_not_reach_into_the_loop_but_into_the_weights_gradient():
    tensors = case(5, 8, 6, 4, dtype=torch.float32)
    weight, x, h = tensors
    with torch.autocast("cpu", torch.bfloat16):
        mixed = loop(DeferredWeight(weight).product, x, h)
    plain = loop(lambda step: step @ weight, x, h)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain, atol=1e-6, rtol=1e-6)
    ours, theirs = (torch.autograd.grad(states.square().sum(), tensors) for states in (mixed, plain))
    for gradient, reference in zip(ours[1:], theirs[1:], strict=True):
        torch.testing.assert_close(gradient, reference, atol=1e-5, rtol=1e-5)
    assert ours[0].dtype == torch.float32
    difference = (ours[0] - theirs[0]).norm() / theirs[0].norm()
    assert 1e-5 < difference < 0.02  # one product in bfloat16


def test_an_input_of_lower_precision_gets_its_gradient_in_that_precision():
    weight, x, _ = case(1, 3, 2, 2, dtype=torch.float32)
    low = x[0].detach().bfloat16().requires_grad_()
    y = DeferredWeight(weight[:2]).product(low)
    torch.testing.assert_close(y, low.float() @ weight[:2])
    y.sum().backward()
    assert low.grad.dtype == torch.bfloat16
