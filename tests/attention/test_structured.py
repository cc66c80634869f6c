"""The penalty over words and in mixed precision; equations 6 and 8: ``test_plain_self_attentive_parity.py``."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replications.self_attentive.model import penalty_over_words
from shared.attention.structured import redundancy_penalty

F64 = torch.float64

many = settings(max_examples=30)
seeds = st.integers(0, 2**31)


def distributions(texts, rows, words, seed):
    """Weights as of an attention, from nearly even ones to nearly one-hot ones."""
    torch.manual_seed(seed)
    return torch.softmax(10 * torch.rand(()) * torch.randn(texts, rows, words, dtype=F64), dim=-1)


@many
@given(rows=st.integers(1, 5), n=st.integers(1, 7), seed=seeds)
def test_over_words_it_is_the_mean_over_all_pairs_with_the_same_gradient_over_n_squared(rows, n, seed):
    a = distributions(3, rows, n, seed)
    a[1:, :, n // 2 :] = 0  # at padding, which counts
    a.requires_grad_()
    expected = (a.mT @ a - torch.eye(n, dtype=F64)).square().mean((1, 2))
    torch.testing.assert_close(penalty_over_words(a), expected, atol=1e-13, rtol=0)
    ours, of_rows = (torch.autograd.grad(p(a).sum(), a)[0] for p in (penalty_over_words, redundancy_penalty))
    torch.testing.assert_close(ours * n**2, of_rows, atol=1e-12, rtol=0)


def test_mixed_precision_does_not_round_the_penalty_away():
    a = torch.eye(4).mul(1 - 1e-3).add(1e-3 / 4).unsqueeze(0)  # rows that nearly keep to a word each
    with torch.autocast("cpu", torch.bfloat16):
        mixed = redundancy_penalty(a)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, redundancy_penalty(a), atol=0, rtol=0)
    assert mixed.item() == pytest.approx(redundancy_penalty(a.double()).item(), rel=1e-3)
