"""The fused attention and the one that shows its weights are one function, under every mask."""

import math

import pytest
import torch

from shared.attention.scaled_dot_product import attend, attend_with_weights, causal_mask

B, H, Q, S, K, V = 3, 2, 5, 6, 4, 7
F64 = torch.float64
TOLERANCES = [(F64, 1e-10), (torch.float32, 1e-5)]
MASKS = {
    "none": lambda: None,
    "of every query and head": lambda: torch.rand(B, H, Q, S) < 0.7,
    "of the source's words": lambda: (torch.arange(S) < torch.tensor([6, 4, 1]).unsqueeze(1))[:, None, None],
    "of the queries": lambda: torch.rand(B, 1, Q, S) < 0.7,
    "of the heads": lambda: torch.tensor([True, False]).view(1, H, 1, 1),
    "of pairs alone": lambda: torch.ones(Q, S, dtype=torch.bool).tril(2).triu(-1),
    "with rows that see nothing": lambda: torch.ones(B, 1, Q, S, dtype=torch.bool).index_fill(
        2, torch.tensor([1, 4]), False
    ),
}
both = pytest.mark.parametrize("function", [attend, attend_with_weights])
tolerances = pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)


def tensors(dtype=F64, queries=Q):
    """Queries, keys and values; seen from afar, so that weights are far from equal."""
    shapes = ((B, H, queries, K), (B, H, S, K), (B, H, S, V))
    return [(2 * torch.randn(shape, dtype=dtype)).requires_grad_() for shape in shapes]


def assert_one_function(inputs, tolerance, **others):
    fused, none = attend(*inputs, **others)
    plain, weights = attend_with_weights(*inputs, **others)
    assert none is None
    assert weights.shape == (*inputs[0].shape[:3], S)
    torch.testing.assert_close(fused, plain, atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(plain)
    gradients = [torch.autograd.grad(output, inputs, cotangent) for output in (fused, plain)]
    for ours, theirs in zip(*gradients, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


@tolerances
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("scale", [None, 1.0])
def test_both_forms_agree_under_every_mask(mask, scale, dtype, tolerance):
    assert_one_function(tensors(dtype), tolerance, mask=mask(), scale=scale)


@tolerances
@pytest.mark.parametrize("queries", [S, S - 2])
def test_both_forms_agree_where_each_sees_itself_and_what_came_before(dtype, tolerance, queries):
    inputs = tensors(dtype, queries=queries)
    assert_one_function(inputs, tolerance, causal=True)
    for function in (attend, attend_with_weights):
        torch.testing.assert_close(
            function(*inputs, causal=True)[0], function(*inputs, mask=causal_mask(queries, S))[0],
            atol=tolerance, rtol=tolerance,
        )  # fmt: skip


def test_equation_1_by_hand():
    q, k, v = (x.detach() for x in tensors())
    for scale, factor in ((None, 1 / math.sqrt(K)), (0.3, 0.3)):
        found, weights = attend_with_weights(q, k, v, scale=scale)
        e = [math.exp(factor * sum(a * b for a, b in zip(q[1, 0, 2], key, strict=True))) for key in k[1, 0]]
        expected = [x / sum(e) for x in e]
        assert weights[1, 0, 2].tolist() == pytest.approx(expected, abs=1e-12)
        context = sum(p * value for p, value in zip(expected, v[1, 0], strict=True))
        torch.testing.assert_close(found[1, 0, 2], context, atol=1e-12, rtol=0)


@both
@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_a_query_that_may_look_nowhere_finds_zero_and_learns_nothing(function, dtype):
    inputs = tensors(dtype)
    found, weights = function(*inputs, mask=MASKS["with rows that see nothing"]())
    assert not found[:, :, [1, 4]].any()
    assert found[:, :, [0, 2, 3]].abs().amin() > 0
    assert weights is None or not weights[:, :, [1, 4]].any()
    gradients = torch.autograd.grad(found, inputs, torch.randn_like(found))
    assert not gradients[0][:, :, [1, 4]].any()
    assert all(gradient.isfinite().all() for gradient in gradients)


@both
def test_what_is_masked_is_not_seen(function):
    q, k, v = tensors()
    mask = MASKS["of the source's words"]()
    hidden = ~mask.transpose(2, 3)  # (B, 1, S, 1)
    expected, _ = function(q, k, v, mask=mask)
    found, _ = function(q, k.masked_fill(hidden, 50.0), v.masked_fill(hidden, -50.0), mask=mask)
    assert torch.equal(found, expected)


def test_weights_are_a_distribution_over_what_may_be_seen():
    mask = MASKS["of pairs alone"]()
    _, weights = attend_with_weights(*tensors(), mask=mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, Q, dtype=F64), atol=1e-12, rtol=0)
    assert ((weights > 0) == mask).all()


def test_the_causal_mask_is_a_lower_triangle():
    assert causal_mask(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 2, device=torch.device("meta")).is_meta
