"""The annotation matrix A and its penalty against equations 6 and 8, entry by entry, and at the ends of the scale."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.self_attentive.model import StructuredSelfAttention
from shared.attention.structured import redundancy_penalty

F64 = torch.float64
D, D_A = 6, 5
many = settings(deadline=None, max_examples=30)
some_lengths = st.lists(st.integers(1, 7), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)
few_rows = st.integers(1, 5)


def case(lengths, rows, seed, dtype=F64):
    """A module with weights large enough to matter, annotations with garbage at padding, and their mask."""
    torch.manual_seed(seed)
    module = StructuredSelfAttention(annotation_size=D, attention_size=D_A, rows=rows).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return module, torch.randn(*mask.shape, D, dtype=dtype), mask


def distributions(texts, rows, words, seed):
    """Weights as of an attention, from nearly even ones to nearly one-hot ones."""
    torch.manual_seed(seed)
    return torch.softmax(10 * torch.rand(()) * torch.randn(texts, rows, words, dtype=F64), dim=-1)


def by_equation_6(module, words):
    """A of one text as lists: annotations (n, D) to r rows of n weights."""
    w_s1, w_s2 = module.w_s1.weight.tolist(), module.w_s2.weight.tolist()
    hidden = [
        [math.tanh(sum(w * h for w, h in zip(row, word, strict=True))) for row in w_s1] for word in words.tolist()
    ]
    rows = []
    for weights in w_s2:
        powers = [math.exp(sum(w * x for w, x in zip(weights, unit, strict=True))) for unit in hidden]
        rows.append([power / sum(powers) for power in powers])
    return rows


@many
@given(lengths=some_lengths, rows=few_rows, seed=seeds)
def test_the_weights_are_those_of_equation_6_over_the_words_alone(lengths, rows, seed):
    module, h, mask = case(lengths, rows, seed)
    a = module(h, mask)
    assert a.shape == (len(lengths), rows, max(lengths))
    for text, length in enumerate(lengths):
        expected = torch.tensor(by_equation_6(module, h[text, :length]), dtype=F64)
        torch.testing.assert_close(a[text, :, :length], expected, atol=1e-12, rtol=0)


@many
@given(lengths=some_lengths, rows=few_rows, seed=seeds, dtype=st.sampled_from([F64, torch.float32]))
def test_rows_sum_to_one_and_padding_has_no_weight_and_no_say(lengths, rows, seed, dtype):
    module, h, mask = case(lengths, rows, seed, dtype)
    a = module(h, mask)
    torch.testing.assert_close(a.sum(-1), torch.ones(len(lengths), rows, dtype=dtype))
    outside = ~mask.unsqueeze(1)
    assert not a.masked_select(outside).any()
    other = torch.where(mask.unsqueeze(-1), h, 1e3 * torch.randn_like(h)).requires_grad_()
    again = module(other, mask)
    assert torch.equal(again, a)
    (gradient,) = torch.autograd.grad(again.square().sum(), other)
    assert not gradient.masked_select(~mask.unsqueeze(-1)).any()


@many
@given(lengths=some_lengths, rows=few_rows, seed=seeds)
def test_reordering_the_words_reorders_the_weights(lengths, rows, seed):
    module, h, mask = case(lengths, rows, seed)
    order = torch.randperm(h.size(1))
    reordered = module(h[:, order], mask[:, order])
    torch.testing.assert_close(reordered, module(h, mask)[..., order], atol=1e-12, rtol=0)


def test_neither_product_has_a_bias():
    module = StructuredSelfAttention(annotation_size=600, attention_size=350, rows=30)
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {
        "w_s1.weight": (350, 600),
        "w_s2.weight": (30, 350),
    }


def test_the_gradient_of_the_weights_is_right():
    module, h, mask = case([4, 2], rows=3, seed=1)

    def weights(h, w_s1, w_s2):
        return torch.func.functional_call(module, {"w_s1.weight": w_s1, "w_s2.weight": w_s2}, (h, mask))

    parameters = [parameter.detach().requires_grad_() for parameter in module.parameters()]
    assert torch.autograd.gradcheck(weights, (h.requires_grad_(), *parameters))


@many
@given(rows=few_rows, words=st.integers(1, 7), seed=seeds)
def test_the_penalty_is_the_sum_of_the_squared_entries(rows, words, seed):
    """So it is the norm with its square, which other code leaves out."""
    a = distributions(3, rows, words, seed)
    found = redundancy_penalty(a)
    for text, penalty in zip(a.tolist(), found.tolist(), strict=True):
        entries = [
            sum(x * y for x, y in zip(text[i], text[j], strict=True)) - (i == j)
            for i in range(rows)
            for j in range(rows)
        ]
        assert penalty == pytest.approx(sum(entry**2 for entry in entries), abs=1e-12)
    norms = torch.linalg.matrix_norm(a @ a.mT - torch.eye(rows, dtype=F64))
    torch.testing.assert_close(found, norms**2, atol=1e-12, rtol=0)


@many
@given(rows=few_rows, words=st.integers(1, 7), seed=seeds)
def test_the_mean_that_other_code_takes_is_smaller_by_the_number_of_entries(rows, words, seed):
    a = distributions(3, rows, words, seed)
    mean = (a @ a.mT - torch.eye(rows, dtype=F64)).square().mean((1, 2))
    torch.testing.assert_close(rows**2 * mean, redundancy_penalty(a), atol=1e-12, rtol=1e-12)


@many
@given(rows=st.integers(1, 8), words=st.integers(1, 8), seed=seeds)
def test_more_rows_than_words_cannot_be_without_penalty(rows, words, seed):
    """AAᵀ has at most n eigenvalues that are not zero, and every other is 1 away from that of I."""
    assert (redundancy_penalty(distributions(4, rows, words, seed)) >= rows - words - 1e-9).all()


@many
@given(rows=st.integers(1, 6), more=st.integers(0, 3), seed=seeds)
def test_rows_that_each_look_at_a_word_of_their_own_have_none(rows, more, seed):
    torch.manual_seed(seed)
    a = torch.eye(rows + more)[torch.randperm(rows + more)[:rows]].unsqueeze(0)
    assert redundancy_penalty(a).tolist() == [0]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rows_that_all_look_at_one_word_are_penalised_for_every_other_row(rows):
    a = torch.zeros(2, rows, 4)
    a[:, :, 2] = 1
    assert redundancy_penalty(a).tolist() == [rows * (rows - 1)] * 2


@many
@given(lengths=some_lengths, rows=few_rows, seed=seeds, more=st.integers(1, 3))
def test_padding_adds_nothing_to_the_penalty(lengths, rows, seed, more):
    module, h, mask = case(lengths, rows, seed)
    a = module(h, mask)
    wider = torch.nn.functional.pad(a, (0, more))
    torch.testing.assert_close(redundancy_penalty(wider), redundancy_penalty(a), atol=1e-13, rtol=0)
    for text, length in enumerate(lengths):
        alone = redundancy_penalty(a[text : text + 1, :, :length])
        torch.testing.assert_close(redundancy_penalty(a)[text : text + 1], alone, atol=1e-13, rtol=0)


def test_the_gradient_of_the_penalty_is_right():
    assert torch.autograd.gradcheck(redundancy_penalty, distributions(2, 3, 5, seed=1).requires_grad_())


def test_mixed_precision_does_not_round_the_penalty_away():
    a = torch.eye(4).mul(1 - 1e-3).add(1e-3 / 4).unsqueeze(0)  # rows that nearly keep to a word each
    with torch.autocast("cpu", torch.bfloat16):
        mixed = redundancy_penalty(a)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, redundancy_penalty(a), atol=0, rtol=0)
    assert mixed.item() == pytest.approx(redundancy_penalty(a.double()).item(), rel=1e-3)
