"""Linear attention is one sum in three exact forms, which see no future; at the limits of numbers and of memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from shared.attention import linear, linear_chunks
from shared.attention.feature_maps import EluPlusOne, Features, ReLU
from shared.attention.linear import linear_attention, linear_attention_weights
from shared.metrics.peak_memory import peak_memory

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


many = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def cut(x, start, end=None):
    """Positions of tensors and of scales."""
    tensors, scales = x
    return tuple(y[:, :, start:end] for y in tensors), {n: y[:, :, start:end] for n, y in scales.items()}


# The equation and its forms


@scaled
@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-10), (torch.float32, 2e-4)])
@many
@given(positions=st.integers(1, 9), chunk=st.integers(1, 10), goes_on=st.booleans(), seed=seeds)
def test_forms_agree_in_values_states_and_gradients(scaled, dtype, tolerance, positions, chunk, goes_on, seed):
    torch.manual_seed(seed)
    (q, k, v), scales = parts(scaled, positions=positions, dtype=dtype)
    k, log_scale = Features(k, scales.get("log_scale")).masked(torch.rand(B, 1, positions) < 0.8)
    state = earlier(scaled, dtype) if goes_on else None
    inputs = [x.requires_grad_() for x in (q, k, v, *([state.sums] if goes_on else []))]
    weights = torch.randn(B, H, positions, V, dtype=dtype), torch.randn(B, H, C, V + 1, dtype=dtype)
    found = []
    for form in FORMS:
        changes = {"chunk": chunk} if form is linear.chunkwise_linear_attention else {}
        out, (sums, peak) = form(q, k, v, log_scale=log_scale, state=state, **changes)
        assert out.dtype == sums.dtype == dtype
        gradients = torch.autograd.grad((out, sums), inputs, weights)
        found.append((out, sums, *([peak] if scaled else []), *gradients))
    for other in found[1:]:
        for ours, theirs in zip(other, found[0], strict=True):
            torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def test_where_only_one_result_is_used_the_gradient_is_right_too():
    (q, k, v), _ = parts()
    k.requires_grad_()
    for n in (0, 1):

        def used(form, n=n):
            out, state = form(q, k, v)
            return torch.autograd.grad((out, state.sums)[n].square().sum(), k)[0]

        torch.testing.assert_close(
            used(linear.chunkwise_linear_attention), used(linear.parallel_linear_attention), **EXACT
        )


# What is seen


@forms
@scaled
@many
@given(words=st.integers(1, T - 1), seed=seeds)
def test_padding_counts_nothing_wherever_it_stands(form, scaled, words, seed):
    torch.manual_seed(seed)
    (q, k, v), scales = parts(scaled)
    real = torch.randperm(T)[:words].sort().values
    mask = torch.zeros(T, dtype=torch.bool).index_fill_(0, real, True)
    masked, log_scale = Features(k, scales.get("log_scale")).masked(mask)
    found, state = form(q, masked, 7 * v, log_scale=log_scale)
    short = {name: x[:, :, real] for name, x in scales.items()}
    expected, same = form(q[:, :, real], k[:, :, real], 7 * v[:, :, real], **short)
    torch.testing.assert_close(found[:, :, real], expected, **EXACT)
    torch.testing.assert_close(tuple(state)[: 1 + scaled], tuple(same)[: 1 + scaled], **EXACT)
    everywhere = linear.linear_attention(q, masked, v, log_scale=log_scale)
    torch.testing.assert_close(everywhere, linear.linear_attention(q, k[:, :, real], v[:, :, real], **short), **EXACT)


# States


@forms
@scaled
@many
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=seeds)
def test_segments_in_turn_are_one_pass(form, scaled, sizes, seed):
    torch.manual_seed(seed)
    x = parts(scaled, positions=sum(sizes))
    tensors = [y.requires_grad_() for y in x[0]]
    state, out, begin = None, [], 0
    for size in sizes:
        segment, scales = cut(x, begin, begin + size)
        y, state = form(*segment, **scales, state=state)
        out.append(y)
        begin += size
    expected, last = form(*tensors, **x[1])
    torch.testing.assert_close(torch.cat(out, dim=2), expected, **EXACT)
    torch.testing.assert_close(tuple(state)[: 1 + scaled], tuple(last)[: 1 + scaled], **EXACT)
    cotangent = torch.randn_like(expected)
    gradients = [torch.autograd.grad(y, tensors, cotangent) for y in (torch.cat(out, dim=2), expected)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


@scaled
def test_a_state_is_read_as_the_keys_it_was_made_of(scaled):
    (q, k, v), scales = parts(scaled)
    head, tail = ({name: x[:, :, part] for name, x in scales.items()} for part in (slice(3), slice(3, None)))
    first = linear.summarize(k[:, :, :3], v[:, :, :3], **head)
    kept = [x.clone() for x in first if x is not None]
    state = linear.summarize(k[:, :, 3:], v[:, :, 3:], **tail, state=first)
    torch.testing.assert_close(linear.read(q, state), linear.linear_attention(q, k, v, **scales), **EXACT)
    assert all(torch.equal(x, y) for x, y in zip(first, kept, strict=False))  # it may be gone on from again


# Weights


# Numbers of any size


@forms
@many
@given(shift=st.floats(-1e4, 1e4), seed=seeds)
def test_scales_are_relative(form, shift, seed):
    torch.manual_seed(seed)
    tensors, scales = parts(scaled=True)
    expected, state = form(*tensors, **scales)
    found, shifted = form(*tensors, log_scale=scales["log_scale"] + shift)
    torch.testing.assert_close(found, expected, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(shifted.sums, state.sums, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(shifted.peak, state.peak + shift, atol=1e-8, rtol=1e-8)


@forms
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scales_of_any_size_overflow_nowhere(form, dtype):
    (q, k, v), _ = parts(positions=20)
    q, k, v = (x.to(dtype).requires_grad_() for x in (q, k, v))
    log_scale = 1000.0 * torch.rand(B, H, 20).argsort(-1) - 10_000
    out, state = form(q, k, v, log_scale=log_scale)
    leader = log_scale.cummax(-1).indices  # of keys so far apart only the largest counts
    torch.testing.assert_close(out, v.gather(2, leader.unsqueeze(-1).expand_as(v)))
    assert state.sums.isfinite().all()
    gradients = torch.autograd.grad(out.float().square().sum(), (q, k, v))
    assert all(gradient.isfinite().all() for gradient in gradients)


@forms
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_are_kept_in_float32(form, dtype):
    positions = 400
    q, k = torch.rand(2, 1, 1, positions, C).to(dtype)
    v = (1000 + torch.randn(1, 1, positions, V)).to(dtype)  # their sum is beyond what float16 holds
    out, state = form(q, k, v)
    exact, _ = form(q.double(), k.double(), v.double())
    assert state.sums.dtype == torch.float32
    assert out.dtype == dtype
    assert torch.equal(out, exact.to(dtype))
    assert torch.equal(
        linear.linear_attention(q, k, v), linear.linear_attention(*(x.double() for x in (q, k, v))).to(dtype)
    )


@pytest.mark.parametrize("form", [*FORMS, linear.linear_attention])
def test_autocast_does_not_reach_in(form):
    (q, k, v), _ = parts(dtype=torch.float32)

    def run():
        result = form(q.requires_grad_(), k, v)
        return result if form is linear.linear_attention else result[0]

    def gradient(out):
        return torch.autograd.grad(out.square().sum(), q)[0]

    expected = run()
    with torch.autocast("cpu", torch.bfloat16):
        found = run()
    assert torch.equal(found, expected)
    assert torch.equal(gradient(found), gradient(expected))


def test_autocast_does_not_reach_into_a_backward_pass_inside_it():
    (q, k, v), _ = parts(dtype=torch.float32)
    out, _ = linear.chunkwise_linear_attention(q, k, v.requires_grad_())
    (expected,) = torch.autograd.grad(out.sum(), v, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        (found,) = torch.autograd.grad(out.sum(), v)
    assert torch.equal(found, expected)


# Time and memory


@scaled
def test_another_position_takes_the_memory_of_its_results_alone(scaled, monkeypatch):
    monkeypatch.setattr(linear_chunks, "ELEMENTS", 2**9)

    def peak(positions):
        (q, k, v), scales = parts(scaled, positions=positions, dtype=torch.float32)
        inputs, cotangent = [x.requires_grad_() for x in (q, k, v)], torch.ones_like(v)
        return peak_memory(
            lambda: torch.autograd.grad(
                linear.chunkwise_linear_attention(*inputs, **scales)[0], inputs, cotangent, retain_graph=True
            )
        )

    results = (C + C + V) + (V + 1)  # gradients of q, k and v, and what they are made from
    largest_scale = int(scaled)
    assert peak(2048) - peak(1024) == 4 * B * H * 1024 * (results + largest_scale)


def test_work_grows_in_proportion_to_length():
    def products(_, a, b, **kwargs):
        return 2 * a[0] * a[1] * a[2] * b[2]

    def work(positions):
        (q, k, v), _ = parts(positions=positions, dtype=torch.float32)
        with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.baddbmm_: products}) as counter:
            out, _ = linear.chunkwise_linear_attention(q.requires_grad_(), k.requires_grad_(), v.requires_grad_())
            out.sum().backward()
        return counter.get_total_flops()

    chunk, both = 64, V + 1
    of_pairs, of_sums = chunk * (C + both), 2 * C * both  # a position's, forward
    backward = chunk * (3 * C + 2 * both + V) + C * (4 * both + V)
    for positions in (64, 128, 1024):
        assert work(positions) == 2 * B * H * positions * (of_pairs + of_sums + backward)


WORDS, SIZE = 6, 4


@given(x=st.floats(-80, 80, width=32))
def test_elu_plus_one_keeps_its_digits_where_the_sum_loses_them(x):
    found = EluPlusOne()(torch.tensor(x))
    expected = torch.tensor(x + 1 if x > 0 else x, dtype=F64)
    expected = expected if x > 0 else expected.exp()
    assert found > 0
    torch.testing.assert_close(found.double(), expected, atol=0, rtol=1e-6)


def test_a_query_of_very_small_features_still_attends():
    phi = EluPlusOne()
    q, k = torch.full((1, 1, 1, SIZE), -40.0), torch.tensor([[[[0.0] * SIZE, [1.0] * SIZE]]])
    assert not (torch.nn.functional.elu(q) + 1).any()
    a = linear_attention_weights(phi.queries(q), phi.keys(k).values)
    torch.testing.assert_close(a.flatten(), torch.tensor([1 / 3, 2 / 3]))


def test_without_epsilon_a_query_may_find_nothing():
    x, v = torch.rand(1, 1, WORDS, SIZE), torch.randn(1, 1, WORDS, SIZE)
    for epsilon in (0.0, 1e-3):
        phi = ReLU(epsilon)
        out = linear_attention(phi.queries(-x), phi.keys(x).values, v)
        assert out.isfinite().all()
        assert bool(out.any()) == (epsilon > 0)
