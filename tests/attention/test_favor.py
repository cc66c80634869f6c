"""FAVOR+'s features by definition, its matrices uniform, projections Gaussian; attention by them, and errors.

Estimates are therefore unbiased; how far they are off is said by lemma 2 and theorem 2 as printed, by sums that can be
done by hand, and by draws.

Tests of distributions have fixed seeds; with others they would fail about once in ten thousand times.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import chi
from torch.nn import functional

from replications.performer.kernel_error import expected_kernel, kernel_mse, orthogonal_mse_bound
from shared.attention import favor, linear
from shared.attention.favor import SoftmaxFeatures, random_projections

F64 = torch.float64
B, H, T, K, P, V = 2, 2, 50, 8, 20, 5
ESTIMATORS = ("positive", "hyperbolic", "trigonometric")


def softmax_map(estimator="positive", dtype=F64, **others):
    return SoftmaxFeatures(**{"key_size": K, "projections": P, "estimator": estimator} | others).to(dtype)


def inputs(scale=1.0, dtype=F64):
    """Queries and keys of norms around ``scale`` · √K, and values."""
    q, k = scale * torch.randn(2, B, H, T, K, dtype=dtype)
    return q, k, torch.randn(B, H, T, V, dtype=dtype)


def plain_features(features, x):
    """Nothing is done about overflow."""
    x = x * K**-0.25
    projected, half = x @ features.w.T, x.square().sum(-1, keepdim=True) / 2
    if features.estimator == "trigonometric":
        return half.exp() / math.sqrt(P) * torch.cat((projected.sin(), projected.cos()), -1)
    if features.estimator == "positive":
        return (-half).exp() / math.sqrt(P) * projected.exp()
    return (-half).exp() / math.sqrt(2 * P) * torch.cat((projected.exp(), (-projected).exp()), -1)


estimators = pytest.mark.parametrize("estimator", ESTIMATORS)
directions = pytest.mark.parametrize("directions", ["orthogonal", "iid"])
many = settings(max_examples=30)
seeds = st.integers(0, 2**31)
scales = st.floats(-2, 3).map(lambda power: 10**power)


def worst_p(samples, distribution):
    """Of Kolmogorov-Smirnov tests of every column, with Bonferroni's correction."""
    return min(stats.kstest(column, distribution).pvalue for column in samples.T) * samples.shape[1]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_orthogonal_blocks_are_orthogonal(size):
    matrices = favor.orthogonal_blocks(7, size)
    torch.testing.assert_close(matrices @ matrices.mT, torch.eye(size).expand(7, -1, -1), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("corrected", "uniform"), [(True, True), (False, False)])
def test_they_are_uniform_and_what_a_qr_decomposition_gives_is_not(corrected, uniform):
    """Entries of a uniform unit vector are distributed as a beta; and a rotated matrix as the matrix itself."""
    size = 4
    matrices, others = favor.orthogonal_blocks(8000, size, corrected=corrected).split(4000)
    beta = stats.beta((size - 1) / 2, (size - 1) / 2, loc=-1, scale=2).cdf
    rotated = torch.linalg.qr(torch.randn(size, size))[0] @ others
    traces = [x.diagonal(dim1=1, dim2=2).sum(1).numpy() for x in (matrices, rotated)]
    found = worst_p(matrices.flatten(1).numpy(), beta), stats.ks_2samp(*traces).pvalue
    assert all(p > 1e-4 for p in found) if uniform else all(p < 1e-12 for p in found)


@directions
def test_each_projection_alone_is_gaussian_and_norms_may_be_fixed(directions):
    size, blocks = 4, 4000
    w = favor.random_projections(blocks * size, size, directions=directions)
    along = (w @ functional.normalize(torch.tensor([1.0, 2.0, -3.0, 0.5]), dim=0)).view(blocks, size)
    lengths = w.square().sum(1).view(blocks, size)
    assert worst_p(along.numpy(), stats.norm.cdf) > 1e-4
    assert worst_p(lengths.numpy(), stats.chi2(size).cdf) > 1e-4
    fixed = favor.random_projections(10, size, directions=directions, norms="sqrt")
    torch.testing.assert_close(fixed.norm(dim=1), torch.full((10,), 2.0))


def test_projections_are_orthogonal_within_blocks_of_k_only():
    w = functional.normalize(favor.random_projections(K + 3, K), dim=1)
    products = (w @ w.T - torch.eye(K + 3)).abs()
    assert products[:K, :K].max() < 1e-5
    assert products[K:, K:].max() < 1e-5
    assert products[:K, K:].min() > 1e-5


@estimators
def test_features_are_the_papers(estimator):
    features, (x, y, _) = softmax_map(estimator), inputs()
    values, log_scale = features(x)
    assert values.shape[-1] == features.size(K)
    torch.testing.assert_close(values * log_scale.exp().unsqueeze(-1), plain_features(features, x), atol=0, rtol=1e-10)
    expected = plain_features(features, x) @ plain_features(features, y).mT
    torch.testing.assert_close(features.kernel(x, y), expected, atol=1e-10, rtol=1e-10)


@estimators
def test_their_gradients_are_too_though_the_scale_has_none(estimator):
    features, x = softmax_map(estimator), inputs()[0].requires_grad_()
    values, log_scale = features.keys(x)
    assert not log_scale.requires_grad
    cotangent = torch.randn_like(values)
    expected = torch.autograd.grad((plain_features(features, x) * cotangent).sum(), x)
    scale = 1 if estimator == "trigonometric" else favor.KEY_SCALE
    found = torch.autograd.grad((values / scale * log_scale.exp().unsqueeze(-1) * cotangent).sum(), x)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


@many
@given(scale=scales, seed=seeds, dtype=st.sampled_from([torch.float32, torch.bfloat16]))
@estimators
def test_no_feature_overflows(estimator, scale, seed, dtype):
    torch.manual_seed(seed)
    features, x = softmax_map(estimator, torch.float32), inputs(scale, dtype)[0]
    (values, log_scale), queries = features.keys(x), features.queries(x)
    assert values.dtype == queries.dtype == dtype
    assert log_scale.dtype == torch.float32
    assert log_scale.isfinite().all()
    if estimator == "trigonometric":
        assert values.abs().max() <= 1
        assert torch.equal(queries, values)
    else:
        assert values.min() >= 0
        assert torch.equal(values.amax(-1), torch.full((B, H, T), favor.KEY_SCALE, dtype=dtype))
        assert queries.min() >= favor.LEAST_QUERY
        assert torch.equal(queries.amax(-1), torch.full((B, H, T), favor.QUERY_SCALE, dtype=dtype))


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_scales_and_fewer_passes_change_no_bit_of_features_that_are_not_small_nor_of_gradients(estimator):
    features, x = softmax_map(estimator, torch.float32), (3 * torch.randn(T, K)).requires_grad_()
    for values, factor in ((features.queries(x), favor.QUERY_SCALE), (features.keys(x).values, favor.KEY_SCALE)):
        plain, cotangent = features(x).values * factor, torch.randn_like(values)
        assert torch.equal(values, plain)
        found, expected = (torch.autograd.grad(form, x, cotangent)[0] for form in (values, plain))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_features_of_float16_are_float32(estimator):
    features, x = softmax_map(estimator, torch.float32), torch.randn(T, K).half()
    for values in (features.queries(x), features.keys(x).values):
        assert values.dtype == torch.float32
        assert values.isfinite().all()


@many
@given(scale=scales, seed=seeds)
@estimators
def test_features_keep_their_digits_whatever_the_norm(estimator, scale, seed):
    torch.manual_seed(seed)
    features, x = softmax_map(estimator, torch.float32), inputs(scale, torch.float32)[0]
    exact = features.double()(x.double())
    found = features.float()(x)
    error = 2e-6 * (1 + x.norm(dim=-1).max())  # of a projection, and so the relative one of a feature
    torch.testing.assert_close(found.values.double(), exact.values, atol=float(error), rtol=0)


@estimators
def test_projections_are_not_rounded_under_autocast_nor_of_narrow_inputs(estimator):
    features, x = softmax_map(estimator, torch.float32), 3 * torch.randn(T, K)
    with torch.autocast("cpu", torch.bfloat16):
        values, log_scale = features(x)
    assert torch.equal(values, features(x).values)
    assert torch.equal(log_scale, features(x).log_scale)
    narrow = x.bfloat16()
    torch.testing.assert_close(features(narrow).values.float(), features(narrow.float()).values, atol=0.005, rtol=0)


@pytest.mark.parametrize("kind", [favor.SoftmaxFeatures, favor.GeneralizedFeatures])
def test_projections_stay_until_they_are_redrawn_and_checkpoints_have_them(kind):
    features, x = kind(key_size=K, projections=P), torch.randn(3, K)
    before, w = features.queries(x), features.w.clone()
    assert torch.equal(features.queries(x), before)
    assert list(features.parameters()) == []
    features.redraw()
    assert (features.w != w).all()
    other = kind(key_size=K, projections=P)
    other.load_state_dict(features.state_dict())
    assert torch.equal(other.queries(x), features.queries(x))
    for module in (features, other):
        module.redraw(torch.Generator().manual_seed(5))
    assert torch.equal(other.w, features.w)
    assert not torch.equal(features.queries(x), before)


@pytest.mark.parametrize("f", [functional.relu, torch.square])
def test_generalized_features_are_f_of_projections(f):
    changed = {"norms": "sqrt", "directions": "iid", "scale": 0.3}
    features, (x, _, _) = favor.GeneralizedFeatures(key_size=K, projections=P, f=f, epsilon=0.1, **changed), inputs()
    features.double()
    torch.testing.assert_close(features.w.norm(dim=1), torch.full((P,), K**0.5, dtype=F64))
    assert ((features.w[:K] @ features.w[:K].T).fill_diagonal_(0).abs() > 1e-3).any()
    expected = f(x @ features.w.T * 0.3**0.5) + 0.1
    torch.testing.assert_close(features.queries(x), expected)
    torch.testing.assert_close(features.keys(x).values, expected)
    assert features.keys(x).log_scale is None
    assert features.size(K) == P
    hidden = torch.arange(T) >= 3
    assert not features.keys(x, hidden).values[..., :3, :].any()


CAUSAL = {
    "chunkwise": lambda *inputs, **others: linear.chunkwise_linear_attention(*inputs, chunk=16, **others)[0],
    "parallel": lambda *inputs, **others: linear.parallel_linear_attention(*inputs, **others)[0],
    "recurrent": lambda *inputs, **others: linear.recurrent_linear_attention(*inputs, **others)[0],
}
forms = pytest.mark.parametrize("form", CAUSAL.values(), ids=CAUSAL)


def attention(form, features, q, k, v, mask=None):
    values, log_scale = features.keys(k, mask)
    return form(features.queries(q), values, v, log_scale=log_scale)


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


many_pairs = settings(max_examples=50)
small_scales = st.floats(0.01, 1)


def pair(size, scale, seed, count=()):
    """x and y, of norms around ``scale`` · √K / K^{1/4}."""
    return np.random.default_rng(seed).normal(scale=scale / size**0.25, size=(2, *count, size))


def lemma_2(x, y, estimator, m):
    """As it is printed, with z = x + y and Δ = x - y."""
    z, delta, kernel = ((x + y) ** 2).sum(), ((x - y) ** 2).sum(), math.exp(x @ y)
    positive = math.exp(z) * kernel**2 * (1 - math.exp(-z)) / m
    return {
        "positive": positive,
        "hyperbolic": (1 - math.exp(-z)) / 2 * positive,
        "trigonometric": math.exp(z) / kernel**2 * (1 - math.exp(-delta)) ** 2 / (2 * m),
    }[estimator]


def simulated(x, y, estimator, projections, directions, norms, draws=10_000):
    """Estimates by definition: from the projections alone."""
    size = len(x)
    blocks = -(-projections // size)
    w = random_projections(draws * blocks * size, size, directions=directions, norms=norms)
    w = w.double().numpy().reshape(draws, -1, size)[:, :projections]
    half = (x @ x + y @ y) / 2
    if estimator == "trigonometric":
        return math.exp(half) * np.cos(w @ (x - y)).mean(1)
    return math.exp(-half) * (np.exp if estimator == "positive" else np.cosh)(w @ (x + y)).mean(1)


@many_pairs
@given(size=st.integers(1, 64), scale=small_scales, seed=seeds, m=st.integers(1, 300))
@estimators
def test_of_independent_gaussians_they_are_those_of_lemma_2(estimator, size, scale, seed, m):
    x, y = pair(size, scale, seed)
    found = kernel_mse(x, y, projections=m, estimator=estimator, orthogonal=False)
    assert found == pytest.approx(lemma_2(x, y, estimator, m), rel=1e-6)
    assert expected_kernel(x, y, estimator=estimator) == pytest.approx(math.exp(x @ y), rel=1e-12)


@many_pairs
@given(size=st.integers(1, 64), scale=small_scales, seed=seeds, m=st.integers(1, 300))
def test_orthogonal_positive_features_keep_theorem_2(size, scale, seed, m):
    x, y = pair(size, scale, seed)
    error, bound = kernel_mse(x, y, projections=m), orthogonal_mse_bound(x, y, projections=m)
    assert error <= bound * (1 + 1e-9)
    if m <= size:
        least = math.exp(-(x @ x + y @ y) / 2)
        printed = 2 * (m - 1) / (m * (size + 2)) * (math.exp(x @ y) - least) ** 2
        assert bound == pytest.approx(lemma_2(x, y, "positive", m) - printed, rel=1e-6)
    if m == 1:
        assert error == pytest.approx(lemma_2(x, y, "positive", 1), rel=1e-6)


@estimators
def test_two_orthogonal_projections_in_the_plane_by_quadrature(estimator):
    """K = 2: the second direction is the first turned by a right angle, and their norms are independent."""
    x, y = np.array([0.3, -0.8]), np.array([0.5, 0.4])
    t, half = (x - y if estimator == "trigonometric" else x + y), (x @ x + y @ y) / 2
    f = {"positive": np.exp, "hyperbolic": np.cosh, "trigonometric": np.cos}[estimator]
    factor = math.exp(half if estimator == "trigonometric" else -half)
    angles = np.arange(64) * 2 * math.pi / 64
    r = (np.arange(1500) + 0.5) / 100
    p = chi(2).pdf(r) / 100
    ends = np.linalg.norm(t) * np.cos(angles), np.linalg.norm(t) * np.sin(angles)
    of_angle = [(f(np.outer(end, r)) @ p, f(np.outer(end, r)) ** 2 @ p) for end in ends]
    second = (of_angle[0][1] + of_angle[1][1] + 2 * of_angle[0][0] * of_angle[1][0]).mean() / 4
    found = kernel_mse(x, y, projections=2, estimator=estimator)
    assert found == pytest.approx(factor**2 * second - math.exp(2 * x @ y), rel=1e-4)


@pytest.mark.parametrize("norms", ["chi", "sqrt"])
@pytest.mark.parametrize("directions", ["orthogonal", "iid"])
@pytest.mark.parametrize("projections", [8, 20])
@estimators
def test_they_are_those_of_draws(estimator, projections, directions, norms):
    """Within four standard errors, of the mean and of the mean square: 48 tests, by chance one in 300 times."""
    x, y = pair(8, 0.6, seed=3)
    kernel = math.exp(x @ y)
    values = simulated(x, y, estimator, projections, directions, norms)
    squares = (values - kernel) ** 2
    mean = expected_kernel(x, y, estimator=estimator, norms=norms)
    mse = kernel_mse(
        x, y, projections=projections, estimator=estimator, orthogonal=directions == "orthogonal", norms=norms
    )
    for found, expected in ((values, mean), (squares, mse)):
        assert abs(found.mean() - expected) < 4 * found.std() / math.sqrt(len(found))


def test_pairs_of_many_shapes_at_once_are_pairs_one_by_one():
    xs, ys = pair(8, 0.6, seed=4, count=(2, 3))
    for function in (kernel_mse, orthogonal_mse_bound):
        together = function(xs, ys, projections=12)
        assert together.shape == (2, 3)
        assert together[1, 2] == pytest.approx(function(xs[1, 2], ys[1, 2], projections=12), rel=1e-12)
    assert expected_kernel(xs, ys, norms="sqrt").shape == (2, 3)


@pytest.mark.parametrize("square", [0.0, 1e-9, 1.0, 100.0])
def test_error_is_none_where_the_estimate_is_certain(square):
    """Positive features at y = -x, trigonometric ones at y = x."""
    x = np.array([math.sqrt(square / 2), -math.sqrt(square / 2)])
    assert kernel_mse(x, -x, projections=4) == pytest.approx(0, abs=1e-12)
    assert kernel_mse(x, x, projections=4, estimator="trigonometric") == pytest.approx(0, abs=1e-12)
