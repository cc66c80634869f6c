"""Attention in hard cases of arithmetic: huge scores, half precision, and nothing to see."""

import pytest
import torch

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import linear_attention
from tests.attention.registry import ATTENTIONS
from tests.properties.test_attention_properties import case, every_entry, masked_entry, over

LONG = 65_536
STEPS = {name for name in ATTENTIONS if "local-p" in name or name.startswith("LSH") or "hash" in name.lower()}
"""Attentions whose weights jump where rounding moves the centre of a window or the side of a plane."""
ESTIMATED = [entry for name, entry in ATTENTIONS.items() if "trigonometric" in name]
"""Estimates whose terms may be negative: of huge scores they are no weights (Choromanski et al. 2021, section 2.3)."""
CHOOSING = {name for name, entry in ATTENTIONS.items() if not entry.differentiable}
smooth = over({name: entry for name, entry in ATTENTIONS.items() if name not in STEPS | CHOOSING})


def scaled(entry, factor, dtype, lengths=(7, 3), seed=3):
    """As :func:`case`, with inputs ``factor`` times as large: scores grow with its square where they are products."""
    module, queries, annotations, mask = case(entry, list(lengths), seed, dtype=torch.float64)
    return module.to(dtype), (queries * factor).to(dtype), (annotations * factor).to(dtype), mask


@every_entry
@pytest.mark.parametrize("factor", [1e2, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_huge_inputs_give_finite_weights_and_gradients(entry, factor, dtype):
    module, queries, annotations, mask = scaled(entry, factor, dtype)
    weights = entry.weights(module, queries.requires_grad_(), annotations.requires_grad_(), mask)
    assert weights.isfinite().all()
    if entry not in ESTIMATED:
        assert (weights.detach().float() >= 0).all()
        assert (weights.detach().float().sum(-1) <= 1.02).all()
    if not entry.differentiable:
        return
    inputs = (queries, annotations, *module.parameters())
    gradients = torch.autograd.grad(weights, inputs, torch.randn_like(weights), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)


@smooth
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)], ids=str)
def test_less_precision_stays_within_bounds_of_more(entry, dtype, within):
    exact = entry.weights(*scaled(entry, 1.0, torch.float64))
    rounded = entry.weights(*scaled(entry, 1.0, dtype))
    torch.testing.assert_close(rounded.to(exact.dtype), exact, atol=within, rtol=0)


@masked_entry
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_where_all_positions_are_masked_there_are_no_weights_and_no_gradients(entry, dtype):
    module, queries, annotations, mask = scaled(entry, 1.0, dtype)
    mask[1] = False
    weights = entry.weights(module, queries.requires_grad_(), annotations.requires_grad_(), mask)
    assert (weights[1] == 0).all()
    assert weights.isfinite().all()
    if not entry.differentiable:
        return
    inputs = (queries, annotations, *module.parameters())
    gradients = torch.autograd.grad(weights, inputs, torch.randn_like(weights), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all((gradient[1] == 0).all() for gradient in gradients[:2])


@pytest.mark.parametrize(("shift", "scale"), [(-60.0, 1.0), (-200.0, 0.0)])
def test_the_limit_of_the_elu_features_is_the_one_that_is_documented(shift, scale):
    """Keys down to -87 have the weights of float64; what float32 cannot hold has none, and nothing overflows."""
    torch.manual_seed(1)
    q, v, features = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 5, 4), EluPlusOne()
    k = (torch.randn(1, 2, 5, 8) + shift).requires_grad_()
    found = linear_attention(features(q), features(k), v)
    exact = linear_attention(features(q.double()), features(k.double()), v.double())
    torch.testing.assert_close(found.double(), scale * exact, atol=1e-4, rtol=1e-4)
    (gradient,) = torch.autograd.grad(found.sum(), k)
    assert gradient.isfinite().all()
