"""Attention with FAVOR+'s features: the softmax in the limit, and causal to the last bit whatever the norms."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.favor import KEY_SCALE
from shared.attention.linear import (
    chunkwise_linear_attention,
    linear_attention,
    parallel_linear_attention,
    recurrent_linear_attention,
)
from shared.attention.scaled_dot_product import attend
from tests.attention.plain_favor import ESTIMATORS, T, inputs, plain_features, softmax_map

CAUSAL = {
    "chunkwise": lambda *inputs, **others: chunkwise_linear_attention(*inputs, chunk=16, **others)[0],
    "parallel": lambda *inputs, **others: parallel_linear_attention(*inputs, **others)[0],
    "recurrent": lambda *inputs, **others: recurrent_linear_attention(*inputs, **others)[0],
}
estimators = pytest.mark.parametrize("estimator", ESTIMATORS)
forms = pytest.mark.parametrize("form", CAUSAL.values(), ids=CAUSAL)
many = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 2**31)
scales = st.floats(-2, 3).map(lambda power: 10**power)


def attention(form, features, q, k, v, mask=None):
    values, log_scale = features.keys(k, mask)
    return form(features.queries(q), values, v, log_scale=log_scale)


@forms
@estimators
def test_causal_attention_is_the_plain_features(estimator, form):
    features, (q, k, v) = softmax_map(estimator), inputs(0.5)
    a = (plain_features(features, q) @ plain_features(features, k).mT).tril()
    expected = a @ v / a.sum(-1, keepdim=True)
    torch.testing.assert_close(attention(form, features, q, k, v), expected, atol=1e-8, rtol=1e-8)


def plain_causal_attention(features, q, k, v):
    """Σ_j w_ij v_j / Σ_j w_ij in float64, by the logarithms of the products of features: nothing can underflow."""

    def logs(x):
        x = x.double() * features.root
        projected = x @ features.w.double().T
        if features.estimator == "hyperbolic":
            projected = torch.cat((projected, -projected), dim=-1)
        return projected - x.square().sum(-1, keepdim=True) / 2

    a, b = logs(q), logs(k)
    pairs = torch.stack([(a + b[..., j : j + 1, :]).logsumexp(-1) for j in range(b.size(-2))], dim=-1)
    later = torch.ones(pairs.shape[-2:], dtype=torch.bool).triu(1)
    return pairs.masked_fill(later, -torch.inf).softmax(-1) @ v.double()


@forms
@pytest.mark.parametrize("opposed", [False, True], ids=["random", "opposed"])
@pytest.mark.parametrize("square", [1, 30, 115, 200, 300, 400, 500, 650, 800])
@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_causal_attention_is_right_for_queries_and_keys_of_large_norm(estimator, square, opposed, form):
    """K = 64 and m = 256 with scaled |x|² up to 800; an opposed key is large where its query is small."""
    features = softmax_map(estimator, torch.float32, key_size=64, projections=256)
    q, k = torch.nn.functional.normalize(torch.randn(2, 1, 2, 24, 64), dim=-1) * square**0.5 / features.root
    k = -q if opposed else k
    v = torch.randn(1, 2, 24, 5)
    leaves = (q.clone().requires_grad_(), k.clone().requires_grad_(), v.requires_grad_())
    found = attention(form, features, *leaves)
    twins = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = plain_causal_attention(features, *twins)
    # A feature is off by as many parts as its logarithm is rounded by, which grows with the norm. The sums of the
    # recurrent form also hold keys times values where a key's feature is below the normal numbers of float32.
    denormal = opposed and form is CAUSAL["recurrent"]
    torch.testing.assert_close(found.double(), expected, atol=0.03 if denormal else 3e-4, rtol=0)
    cotangent = torch.randn_like(v)
    gradients = torch.autograd.grad((found * cotangent).sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)
    if square <= 115:  # beyond it some are damped, or of such features
        for ours, theirs in zip(gradients, torch.autograd.grad((expected * cotangent).sum(), twins), strict=True):
            torch.testing.assert_close(ours.double(), theirs, atol=2e-4 * float(theirs.abs().max()), rtol=0)


@many
@given(square=st.floats(0, 5000), seed=seeds, opposed=st.booleans(), causal=st.booleans())
@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_gradients_are_finite_whatever_the_norms(estimator, square, seed, opposed, causal):
    torch.manual_seed(seed)
    features = softmax_map(estimator, torch.float32, key_size=16, projections=64)
    q, k = torch.nn.functional.normalize(torch.randn(2, 1, 2, 20, 16), dim=-1) * square**0.5 / features.root
    leaves = (q.requires_grad_(), (-q.detach() if opposed else k).requires_grad_(), torch.randn(1, 2, 20, 5))
    found = attention(CAUSAL["chunkwise"] if causal else linear_attention, features, *leaves)
    gradients = torch.autograd.grad((found * torch.randn_like(found)).sum(), leaves[:2])
    assert all(gradient.isfinite().all() for gradient in gradients)


@estimators
def test_attention_is_the_softmax_in_the_limit(estimator):
    q, k, v = inputs(0.4)
    expected = attend(q, k, v)
    few, enough = (attention(linear_attention, softmax_map(estimator, projections=p), q, k, v) for p in (32, 32_000))
    error = (enough - expected).square().mean()
    assert error < (few - expected).square().mean() / 50
    assert error < 1e-3 * expected.square().mean()


@forms
@pytest.mark.parametrize("factor", [0.1, 10])
@pytest.mark.parametrize("scale", [1, 30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@estimators
def test_what_comes_later_changes_not_one_bit(estimator, dtype, scale, factor, form):
    """Within a chunk and across chunks, where the scales of later keys are far larger, or far smaller."""
    features, (q, k, v), at = softmax_map(estimator, torch.float32), inputs(scale, dtype), 21
    before = attention(form, features, q, k, v)
    later, others = torch.arange(T).unsqueeze(1) >= at, inputs(factor * scale, dtype)
    changed = [torch.where(later, *both) for both in zip(others, (q, k, v), strict=True)]
    scales = features.keys(changed[1]).log_scale
    assert ((scales[:, :, at:].mean() - scales[:, :, :at].mean()).abs() > 1).item()
    after = attention(form, features, *changed)
    assert torch.equal(after[:, :, :at], before[:, :, :at])
    assert not torch.equal(after[:, :, at:], before[:, :, at:])


def test_it_would_change_with_the_maximum_of_the_whole_sequence_and_a_constant_after_it():
    """As in the released code: what the test above is there to find."""
    features, (q, k, v), at = softmax_map(), inputs(), 21

    def released(keys):
        values, log_scale = features.keys(keys)
        values = values / KEY_SCALE * (log_scale - log_scale.amax(-1, keepdim=True)).exp().unsqueeze(-1) + 1e-6
        return CAUSAL["parallel"](features.queries(q), values, v)

    smaller = torch.where(torch.arange(T).unsqueeze(1) >= at, 0.0, 3 * k)
    assert (released(smaller) - released(3 * k))[:, :, :at].abs().max() > 1e-4


@many
@given(scale=scales, seed=seeds, dtype=st.sampled_from([torch.float32, torch.bfloat16]))
@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_whatever_the_norms_what_is_found_lies_among_the_values_seen(estimator, scale, seed, dtype):
    """Weights are positive and sum to one; gradients are numbers, and none comes from later."""
    torch.manual_seed(seed)
    features, (q, k, v) = softmax_map(estimator, torch.float32), inputs(scale, dtype)
    k.requires_grad_()
    found = attention(CAUSAL["chunkwise"], features, q.requires_grad_(), k, v)
    slack = 1e-4 if dtype == torch.float32 else 0.05
    assert (found <= v.cummax(2).values + slack).all()
    assert (found >= v.cummin(2).values - slack).all()
    gradients = torch.autograd.grad(found[:, :, :21].sum(), (q, k))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not any(gradient[:, :, 21:].any() for gradient in gradients)


@many
@given(scale=st.floats(-2, 2).map(lambda power: 10**power), seed=seeds)
@estimators
def test_all_causal_forms_are_one_whatever_the_norms(estimator, scale, seed):
    torch.manual_seed(seed)
    features, (q, k, v) = softmax_map(estimator), inputs(scale)
    q, k = q[:1, :, :20].requires_grad_(), k[:1, :, :20].requires_grad_()
    results = []
    for form in CAUSAL.values():
        found = attention(form, features, q, k, v[:1, :, :20])
        gradients = torch.autograd.grad((found * v[:1, :, :20].flip(2)).sum(), (q, k))
        results.append((found.detach(), *gradients))
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            size = float(1 + y.abs().max())  # denominators of trigonometric features may be next to nothing
            torch.testing.assert_close(x / size, y / size, atol=1e-7, rtol=1e-6)


@estimators
def test_padding_is_as_if_it_were_not_there(estimator):
    features, (q, k, v) = softmax_map(estimator), inputs()
    mask = (torch.arange(T) < 30)[None, None]
    garbage = torch.where(mask.unsqueeze(-1), k, 100.0)
    found = attention(linear_attention, features, q, garbage, v, mask)
    expected = attention(linear_attention, features, q, k[:, :, :30], v[:, :, :30])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
