"""The fused attending recurrence against its step-by-step twin."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.bahdanau.model import align_and_write
from shared.layers.attentive_recurrence import attentive_recurrence

F64 = torch.float64
NAMES = ("x", "initial", "keys", "values", "w_a", "v_a", "u_gates", "u_candidate")
many = settings(deadline=None, max_examples=30)
sizes = {
    "steps": st.integers(1, 5), "batch": st.integers(1, 3), "length": st.integers(1, 5),
    "width": st.integers(1, 5), "a": st.integers(1, 5), "seed": st.integers(0, 2**31),
}  # fmt: skip


def case(steps, batch, length, width, a, seed=1, *, dtype=F64):
    """All differentiable inputs by name, and a mask with at least one word in each source."""
    torch.manual_seed(seed)
    shapes = (
        (steps, batch, 3 * width), (batch, width), (batch, length, a), (batch, length, 3 * width),
        (width, a), (a,), (width, 2 * width), (width, width),
    )  # fmt: skip
    tensors = {n: torch.randn(s, dtype=dtype, requires_grad=True) for n, s in zip(NAMES, shapes, strict=True)}
    mask = torch.rand(batch, length) < 0.6
    mask[:, 0] = True
    return tensors, mask


def gradients(outputs, tensors, cotangents):
    inputs = list(tensors.values())
    return torch.autograd.grad(outputs, inputs, cotangents, materialize_grads=True)  # one step reads no word


@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-10), (torch.float32, 1e-5)])
@many
@given(**sizes)
def test_values_and_gradients_are_those_of_the_equations(dtype, tolerance, **size):
    tensors, mask = case(**size, dtype=dtype)
    fast, naive = attentive_recurrence(**tensors, mask=mask), align_and_write(**tensors, mask=mask)
    for ours, theirs in zip(fast, naive, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
    cotangents = [torch.randn_like(output) for output in fast]
    for name, ours, theirs in zip(
        NAMES, gradients(fast, tensors, cotangents), gradients(naive, tensors, cotangents), strict=True
    ):
        torch.testing.assert_close(
            ours, theirs, atol=50 * tolerance, rtol=50 * tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_the_hand_written_backward_pass_passes_gradcheck():
    tensors, mask = case(3, 2, 3, 2, 2)

    def function(*args):
        return attentive_recurrence(**dict(zip(NAMES, args, strict=True)), mask=mask)

    assert torch.autograd.gradcheck(function, tuple(tensors.values()))


@pytest.mark.parametrize("used", [0, 1])
def test_either_result_may_be_left_unused(used):
    tensors, mask = case(3, 2, 4, 3, 2)
    fast = attentive_recurrence(**tensors, mask=mask)[used]
    naive = align_and_write(**tensors, mask=mask)[used]
    cotangent = torch.randn_like(fast)
    for ours, theirs in zip(gradients(fast, tensors, cotangent), gradients(naive, tensors, cotangent), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


def test_results_are_the_states_before_each_step():
    tensors, mask = case(4, 2, 3, 3, 2)
    states, alphas = attentive_recurrence(**tensors, mask=mask)
    assert torch.equal(states[0], tensors["initial"])
    longer = {**tensors, "x": torch.cat((tensors["x"], torch.randn_like(tensors["x"][:1])))}
    more, more_alphas = attentive_recurrence(**longer, mask=mask)
    assert torch.equal(more[:4], states)
    assert torch.equal(more_alphas[:4], alphas)
    changed = {**tensors, "x": torch.cat((tensors["x"][:3], torch.randn_like(tensors["x"][:1])))}
    assert torch.equal(attentive_recurrence(**changed, mask=mask)[0], states)  # x_T only makes s_T


@many
@given(**sizes)
def test_what_stands_in_the_padding_is_not_seen(**size):
    tensors, mask = case(**size)
    states, alphas = attentive_recurrence(**tensors, mask=mask)
    hidden = mask.unsqueeze(-1)
    garbage = {
        **tensors,
        **{n: torch.where(hidden, tensors[n], 100 * torch.randn_like(tensors[n])) for n in ("keys", "values")},
    }
    again = attentive_recurrence(**garbage, mask=mask)
    assert torch.equal(again[0], states)
    assert torch.equal(again[1], alphas)
    assert (alphas[:, ~mask] == 0).all()
    torch.testing.assert_close(alphas.sum(-1), torch.ones_like(alphas[..., 0]), atol=1e-12, rtol=0)
    sources = (tensors["keys"], tensors["values"])
    for d in torch.autograd.grad((states, alphas), sources, (torch.randn_like(states), torch.randn_like(alphas))):
        assert (d[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_a_source_without_words_gives_zero_weights_and_finite_gradients(dtype):
    tensors, mask = case(4, 3, 3, 3, 2, dtype=dtype)
    mask[1] = False
    states, alphas = attentive_recurrence(**tensors, mask=mask)
    assert (alphas[:, 1] == 0).all()
    assert states.isfinite().all()
    found = dict(zip(NAMES, gradients((states, alphas), tensors, (states, alphas)), strict=True))
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert (found["keys"][1] == 0).all()
    assert (found["values"][1] == 0).all()


def test_strided_inputs_are_fine():
    tensors, mask = case(4, 3, 3, 3, 2)
    strided = {n: t.detach().mT.contiguous().mT if t.dim() > 1 else t.detach() for n, t in tensors.items()}
    assert not strided["keys"].is_contiguous()
    for tensor in strided.values():
        tensor.requires_grad_()
    fast, plain = attentive_recurrence(**strided, mask=mask), attentive_recurrence(**tensors, mask=mask)
    cotangents = [torch.randn_like(output) for output in fast]
    for ours, theirs in zip(
        (*fast, *gradients(fast, strided, cotangents)), (*plain, *gradients(plain, tensors, cotangents)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_under_autocast_all_but_the_products_with_weights_stays_in_float32():
    tensors, mask = case(4, 3, 3, 3, 2, dtype=torch.float32)
    for name in ("w_a", "u_gates", "u_candidate"):
        tensors[name].data.zero_()  # products with zero weights are exact, so that any other rounding shows
    plain = attentive_recurrence(**tensors, mask=mask)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = attentive_recurrence(**tensors, mask=mask)
    for ours, theirs in zip(mixed, plain, strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, theirs)
    cotangents = [torch.randn_like(output) for output in plain]
    exact = ("x", "initial", "keys", "values", "v_a")
    pairs = zip(gradients(mixed, tensors, cotangents), gradients(plain, tensors, cotangents), strict=True)
    for name, (ours, theirs) in zip(NAMES, pairs, strict=True):
        assert ours.dtype == torch.float32
        if name in exact:
            assert torch.equal(ours, theirs), name


def test_autocast_takes_inputs_of_the_lower_precision():
    tensors, mask = case(4, 3, 3, 3, 2, dtype=torch.float32)
    low = {n: t.detach().bfloat16().requires_grad_() if n in ("x", "initial", "keys", "values") else t
           for n, t in tensors.items()}  # fmt: skip
    with torch.autocast("cpu", torch.bfloat16):
        states, alphas = attentive_recurrence(**low, mask=mask)
    reference = align_and_write(**tensors, mask=mask)
    assert states.dtype == alphas.dtype == torch.float32
    torch.testing.assert_close((states, alphas), reference, atol=0.05, rtol=0.05)
    for (name, tensor), gradient in zip(low.items(), gradients(states.sum(), low, None), strict=True):
        assert gradient.dtype == tensor.dtype, name
        assert gradient.isfinite().all()
