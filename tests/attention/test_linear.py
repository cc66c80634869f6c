"""Linear attention is one sum in three exact forms, which see no future, no padding and no end of a segment."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.feature_maps import Features
from shared.attention.linear import (
    State,
    chunkwise_linear_attention,
    linear_attention,
    linear_attention_step,
    linear_attention_weights,
    parallel_linear_attention,
    read,
    summarize,
)
from tests.attention.plain_linear import EXACT, F64, FORMS, B, C, H, T, V, by_hand, earlier, forms, parts, scaled

many = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def cut(x, start, end=None):
    """Positions of tensors and of scales."""
    tensors, scales = x
    return tuple(y[:, :, start:end] for y in tensors), {n: y[:, :, start:end] for n, y in scales.items()}


def changed(x, start):
    """Other positions from there on."""
    tensors, scales = x
    copies = tuple(y.clone() for y in tensors), {name: y.clone() for name, y in scales.items()}
    for y in (*copies[0], *copies[1].values()):
        y[:, :, start:] = 100 * torch.rand_like(y[:, :, start:])
    return copies


# The equation and its forms


@forms
@scaled
def test_it_is_the_equation(form, scaled):
    tensors, scales = parts(scaled)
    torch.testing.assert_close(form(*tensors, **scales)[0], by_hand(*tensors, **scales), **EXACT)


@scaled
def test_it_is_the_equation_where_all_is_seen(scaled):
    (_, k, v), scales = parts(scaled)
    q = torch.rand(B, H, 4, C, dtype=F64)
    expected = by_hand(q, k, v, **scales, causal=False)
    torch.testing.assert_close(linear_attention(q, k, v, **scales), expected, **EXACT)


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
        changes = {"chunk": chunk} if form is chunkwise_linear_attention else {}
        out, (sums, peak) = form(q, k, v, log_scale=log_scale, state=state, **changes)
        assert out.dtype == sums.dtype == dtype
        gradients = torch.autograd.grad((out, sums), inputs, weights)
        found.append((out, sums, *([peak] if scaled else []), *gradients))
    for other in found[1:]:
        for ours, theirs in zip(other, found[0], strict=True):
            torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


@scaled
@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_the_gradient_is_right(scaled, chunk):
    tensors, scales = (
        (x[:1, :1, :5] for x in parts(scaled)[0]),
        {n: x[:1, :1, :5] for n, x in parts(scaled)[1].items()},
    )
    state = State(*(None if x is None else x[:1, :1] for x in earlier(scaled)))
    inputs = [x.requires_grad_() for x in (*tensors, state.sums)]

    def called(q, k, v, sums):
        out, after = chunkwise_linear_attention(q, k, v, **scales, state=State(sums, state.peak), chunk=chunk)
        return out, after.sums

    assert torch.autograd.gradcheck(called, inputs)


@scaled
def test_long_sequences_lose_no_digits(scaled):
    tensors, scales = parts(scaled, positions=1000)
    exact, _ = parallel_linear_attention(*tensors, **scales)
    short = {name: x.float() for name, x in scales.items()}
    for form in FORMS:
        found, _ = form(*(x.float() for x in tensors), **short)
        torch.testing.assert_close(found.double(), exact, atol=5e-6, rtol=5e-6)


def test_where_only_one_result_is_used_the_gradient_is_right_too():
    (q, k, v), _ = parts()
    k.requires_grad_()
    for n in (0, 1):

        def used(form, n=n):
            out, state = form(q, k, v)
            return torch.autograd.grad((out, state.sums)[n].square().sum(), k)[0]

        torch.testing.assert_close(used(chunkwise_linear_attention), used(parallel_linear_attention), **EXACT)


# What is seen


@pytest.mark.parametrize("form", [*FORMS, partial(chunkwise_linear_attention, chunk=2)])
@scaled
def test_nothing_of_the_future_is_seen_to_the_last_bit(form, scaled):
    x = parts(scaled, dtype=torch.float32)
    expected, _ = form(*x[0], **x[1])
    for t in range(1, T):
        tensors, scales = changed(x, t)
        found, _ = form(*tensors, **scales)
        assert torch.equal(found[:, :, :t], expected[:, :, :t])
        assert not torch.allclose(found[:, :, t:], expected[:, :, t:])


@forms
@scaled
def test_gradients_reach_all_of_the_past_and_nothing_later(form, scaled):
    (q, k, v), scales = parts(scaled)
    out, _ = form(q, k.requires_grad_(), v.requires_grad_(), **scales)
    for t in range(1, T):  # with a single key its weight is 1, whatever it is
        gradients = torch.autograd.grad(out[:, :, t].square().sum(), (k, v), retain_graph=True)
        for gradient in gradients:
            reached = gradient.abs().sum((0, 1, 3)) > 0
            assert reached.tolist() == [j <= t for j in range(T)]


@forms
@scaled
def test_the_order_of_the_past_is_nothing(form, scaled):
    (q, k, v), scales = parts(scaled)
    order = torch.cat((torch.randperm(T - 1), torch.tensor([T - 1])))
    reordered = {name: x[:, :, order] for name, x in scales.items()}
    expected, state = form(q, k, v, **scales)
    found, same = form(q, k[:, :, order], v[:, :, order], **reordered)
    torch.testing.assert_close(found[:, :, -1], expected[:, :, -1], **EXACT)
    torch.testing.assert_close(same.sums, state.sums, **EXACT)
    assert not torch.allclose(found[:, :, :-1], expected[:, :, :-1])


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
    everywhere = linear_attention(q, masked, v, log_scale=log_scale)
    torch.testing.assert_close(everywhere, linear_attention(q, k[:, :, real], v[:, :, real], **short), **EXACT)


@forms
@scaled
def test_where_nothing_is_seen_there_is_zero_and_nothing_to_learn(form, scaled):
    (q, k, v), scales = parts(scaled)
    tensors = [x.requires_grad_() for x in (q, k, v)]
    mask = (torch.arange(T) >= 3).expand(B, 1, T).clone()
    mask[0] = False
    for attend in (lambda *x, **scale: form(*x, **scale)[0], linear_attention):
        masked, log_scale = Features(k, scales.get("log_scale")).masked(mask)
        out = attend(q, masked, v, log_scale=log_scale)
        assert not out[0].any()
        assert out[1, :, 3:].any()
        gradients = torch.autograd.grad(out.square().sum(), tensors)
        assert all(gradient.isfinite().all() for gradient in gradients)
        assert not any(gradient[0].any() for gradient in gradients)


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
    first = summarize(k[:, :, :3], v[:, :, :3], **head)
    kept = [x.clone() for x in first if x is not None]
    state = summarize(k[:, :, 3:], v[:, :, 3:], **tail, state=first)
    torch.testing.assert_close(read(q, state), linear_attention(q, k, v, **scales), **EXACT)
    assert all(torch.equal(x, y) for x, y in zip(first, kept, strict=False))  # it may be gone on from again


def test_a_state_does_not_grow():
    (q, k, v), _ = parts(positions=50)
    sizes, state = set(), None
    for t in range(50):
        _, state = linear_attention_step(q[:, :, t], k[:, :, t], v[:, :, t], state)
        sizes.add(state.sums.numel())
    assert sizes == {B * H * C * (V + 1)}


# Weights


@scaled
@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_those_of_the_result(scaled, causal):
    (q, k, v), scales = parts(scaled)
    a = linear_attention_weights(q, k, **scales, causal=causal)
    expected = (chunkwise_linear_attention(q, k, v, **scales)[0]) if causal else linear_attention(q, k, v, **scales)
    assert a.shape == (B, H, T, T)
    torch.testing.assert_close(a @ v, expected, **EXACT)
    torch.testing.assert_close(a.sum(-1), torch.ones(B, H, T, dtype=F64), **EXACT)
    assert ((a > 0) == (torch.ones(T, T).tril() > 0 if causal else torch.ones(T, T) > 0)).all()
