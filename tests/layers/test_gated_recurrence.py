"""The fused gated recurrence against its step-by-step twin, and the unit around it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.bahdanau.model import gated_unit, read
from shared.layers.gated_recurrence import GatedUnit, gated_recurrence

F64 = torch.float64
many = settings(deadline=None, max_examples=30)
sizes = {
    "steps": st.integers(1, 5), "directions": st.integers(1, 2), "batch": st.integers(1, 3),
    "width": st.integers(1, 5), "seed": st.integers(0, 2**31),
}  # fmt: skip


def case(steps, directions, batch, width, seed=1, *, dtype=F64):
    """x, initial, u_gates and u_candidate, all wanting gradients, and a mask with holes anywhere."""
    torch.manual_seed(seed)
    shapes = (
        (steps, directions, batch, 3 * width), (directions, batch, width),
        (directions, width, 2 * width), (directions, width, width),
    )  # fmt: skip
    inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    return inputs, torch.rand(steps, directions, batch) < 0.7


@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-10), (torch.float32, 1e-5)])
@many
@given(**sizes)
def test_values_and_gradients_are_those_of_the_equations(dtype, tolerance, **size):
    inputs, mask = case(**size, dtype=dtype)
    fast, naive = gated_recurrence(*inputs, mask), read(*inputs, mask)
    assert fast.dtype == dtype
    torch.testing.assert_close(fast, naive, atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(fast)
    for ours, theirs in zip(
        torch.autograd.grad(fast, inputs, cotangent), torch.autograd.grad(naive, inputs, cotangent), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


def test_the_hand_written_backward_pass_passes_gradcheck():
    inputs, mask = case(3, 2, 2, 2)
    assert torch.autograd.gradcheck(lambda *args: gated_recurrence(*args, mask), inputs)


def test_gradients_reach_only_what_wants_them_and_strided_inputs_are_fine():
    inputs, mask = case(4, 2, 3, 2)
    x, initial, u_gates, u_candidate = (tensor.detach() for tensor in inputs)
    strided = x.transpose(0, 2).contiguous().transpose(0, 2).requires_grad_()
    states = gated_recurrence(strided, initial, u_gates, u_candidate, mask)
    torch.testing.assert_close(states, gated_recurrence(*inputs, mask), atol=1e-14, rtol=0)
    assert torch.autograd.grad(states.sum(), strided)[0].isfinite().all()


@many
@given(**sizes)
def test_the_mask_carries_the_state(**size):
    inputs, mask = case(**size)
    x, initial = inputs[0], inputs[1]
    states = gated_recurrence(*inputs, mask)
    before = torch.cat((initial.unsqueeze(0), states[:-1]))
    assert torch.equal(states[~mask], before[~mask])
    garbage = torch.where(mask.unsqueeze(-1), x, 1e6 * torch.randn_like(x))
    assert torch.equal(gated_recurrence(garbage, *inputs[1:], mask), states)
    (d_x,) = torch.autograd.grad(states, x, torch.randn_like(states))
    assert (d_x[~mask] == 0).all()


def test_a_sequence_without_words_stays_where_it_started():
    inputs, mask = case(4, 1, 2, 3)
    mask[:] = True
    mask[:, :, 1] = False
    inputs[1].data[:, 1] = 0
    states = gated_recurrence(*inputs, mask)
    assert (states[:, :, 1] == 0).all()
    gradients = torch.autograd.grad(states.sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][:, :, 1] == 0).all()
    assert torch.equal(gradients[1][:, 1], torch.full_like(gradients[1][:, 1], 4.0))  # one for each step's output


def test_extreme_inputs_saturate_without_nan():
    inputs, mask = case(6, 1, 2, 3, dtype=torch.float32)
    inputs[0].data.mul_(1e30)
    states = gated_recurrence(*inputs, mask)
    gradients = torch.autograd.grad(states.sum(), inputs)
    assert all(tensor.isfinite().all() for tensor in (states, *gradients))


def test_autocast_does_not_reach_into_the_loop():
    inputs, mask = case(5, 2, 3, 4, dtype=torch.float32)
    plain = gated_recurrence(*inputs, mask)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = gated_recurrence(*inputs, mask)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, plain)
    ours = torch.autograd.grad(mixed.square().sum(), inputs)
    theirs = torch.autograd.grad(plain.square().sum(), inputs)
    for gradient, reference in zip(ours[:2], theirs[:2], strict=True):
        assert torch.equal(gradient, reference)
    for gradient, reference in zip(ours[2:], theirs[2:], strict=True):  # weights': one product in bfloat16
        assert gradient.dtype == torch.float32
        assert (gradient - reference).norm() < 0.02 * reference.norm()


def test_a_step_is_a_forward_pass_over_one_step():
    unit = GatedUnit(input_size=3, hidden_size=4).to(F64)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter)
    h = torch.randn(1, 5, 4, dtype=F64)
    mask = torch.ones(6, 1, 5, dtype=torch.bool)
    projected = unit.project(torch.randn(1, 30, 3, dtype=F64)).view(1, 6, 5, 12).transpose(0, 1)  # (T, 1, B, 3N)
    weights = unit.u_gates, unit.u_candidate
    states = gated_recurrence(projected, h, *weights, mask)
    for t in range(6):
        h = gated_unit(projected[t], h, *weights)
        torch.testing.assert_close(h, states[t], atol=1e-12, rtol=0)
    beams, one = torch.randn(5, 2, 4, dtype=F64), [weight[0] for weight in weights]  # any leading shape
    apart = torch.stack([gated_unit(projected[0, 0], beams[:, k], *one) for k in range(2)], dim=1)
    together = gated_unit(projected[0, 0].unsqueeze(1), beams, *one)
    torch.testing.assert_close(together, apart, atol=1e-12, rtol=0)


def test_each_direction_projects_with_its_own_weights():
    unit = GatedUnit(input_size=3, hidden_size=2, directions=2).to(F64)
    unit.b.data.normal_()
    one, two = torch.randn(7, 3, dtype=F64), torch.randn(7, 3, dtype=F64)
    projected = unit.project(torch.stack((one, two)))
    for d, inputs in enumerate((one, two)):
        torch.testing.assert_close(projected[d], inputs @ unit.w[d] + unit.b[d], atol=1e-12, rtol=0)


def test_every_recurrent_matrix_starts_orthogonal_on_its_own():
    unit = GatedUnit(input_size=40, hidden_size=30, directions=2)
    matrices = [
        matrix.detach()
        for gates, candidate in zip(unit.u_gates, unit.u_candidate, strict=True)
        for matrix in (*gates.chunk(2, dim=-1), candidate)
    ]
    assert len(matrices) == 6
    for i, matrix in enumerate(matrices):
        torch.testing.assert_close(matrix @ matrix.t(), torch.eye(30), atol=1e-5, rtol=0)
        assert all((matrix - other).abs().max() > 0.1 for other in matrices[:i])
    assert (unit.b == 0).all()
    assert float(unit.w.detach().std()) == pytest.approx(0.01, rel=5 / math.sqrt(2 * unit.w.numel()))
