"""Linear attention of numbers of any size and of sequences of any length: what it takes, and what it keeps."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from shared.attention import linear_chunks
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.metrics.peak_memory import peak_memory
from tests.attention.plain_linear import FORMS, B, C, H, V, forms, parts, scaled

many = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


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
    assert torch.equal(linear_attention(q, k, v), linear_attention(*(x.double() for x in (q, k, v))).to(dtype))


@pytest.mark.parametrize("form", [*FORMS, linear_attention])
def test_autocast_does_not_reach_in(form):
    (q, k, v), _ = parts(dtype=torch.float32)

    def run():
        result = form(q.requires_grad_(), k, v)
        return result if form is linear_attention else result[0]

    def gradient(out):
        return torch.autograd.grad(out.square().sum(), q)[0]

    expected = run()
    with torch.autocast("cpu", torch.bfloat16):
        found = run()
    assert torch.equal(found, expected)
    assert torch.equal(gradient(found), gradient(expected))


def test_autocast_does_not_reach_into_a_backward_pass_inside_it():
    (q, k, v), _ = parts(dtype=torch.float32)
    out, _ = chunkwise_linear_attention(q, k, v.requires_grad_())
    (expected,) = torch.autograd.grad(out.sum(), v, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        (found,) = torch.autograd.grad(out.sum(), v)
    assert torch.equal(found, expected)


# Time and memory


class _Sizes(TorchDispatchMode):
    """The number of elements of every tensor that is made."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        for x in result if isinstance(result, tuple | list) else [result]:
            if isinstance(x, torch.Tensor):
                self.largest = max(self.largest, x.numel())
        return result


@scaled
def test_no_tensor_on_either_way_is_larger_than_features_or_values(scaled, monkeypatch):
    monkeypatch.setattr(linear_chunks, "ELEMENTS", 2**13)
    positions, c, v_size = 640, 32, 24
    q, k = torch.rand(2, B, H, positions, c).requires_grad_().unbind(0)
    v = torch.randn(B, H, positions, v_size, requires_grad=True)
    scales = {"log_scale": torch.randn(B, H, positions)} if scaled else {}
    saved = []
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.numel()) or x, lambda x: x),
        _Sizes() as sizes,
    ):
        out, _ = chunkwise_linear_attention(q, k, v, **scales, chunk=16)
        torch.autograd.grad(out.sum(), (q, k, v))
    largest = B * H * positions * max(c, v_size + 1)
    assert max(saved) <= largest
    assert sum(saved) <= B * H * positions * (2 * c + 2 * v_size + 4) + B * H * c * (v_size + 1)
    assert sizes.largest <= largest
    assert largest < B * H * positions * c * v_size / 16


@scaled
def test_another_position_takes_the_memory_of_its_results_alone(scaled, monkeypatch):
    monkeypatch.setattr(linear_chunks, "ELEMENTS", 2**9)

    def peak(positions):
        (q, k, v), scales = parts(scaled, positions=positions, dtype=torch.float32)
        inputs, cotangent = [x.requires_grad_() for x in (q, k, v)], torch.ones_like(v)
        return peak_memory(
            lambda: torch.autograd.grad(
                chunkwise_linear_attention(*inputs, **scales)[0], inputs, cotangent, retain_graph=True
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
            out, _ = chunkwise_linear_attention(q.requires_grad_(), k.requires_grad_(), v.requires_grad_())
            out.sum().backward()
        return counter.get_total_flops()

    chunk, both = 64, V + 1
    of_pairs, of_sums = chunk * (C + both), 2 * C * both  # a position's, forward
    backward = chunk * (3 * C + 2 * both + V) + C * (4 * both + V)
    for positions in (64, 128, 1024):
        assert work(positions) == 2 * B * H * positions * (of_pairs + of_sums + backward)
