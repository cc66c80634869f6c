"""The masked softmax: a distribution over what may be attended to, and nothing elsewhere."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.softmax import masked_softmax


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_it_is_the_softmax_of_the_positions_left(data):
    length = data.draw(st.integers(1, 8))
    numbers = st.floats(-50, 50, allow_nan=False)
    scores = torch.tensor(data.draw(st.lists(numbers, min_size=length, max_size=length)), dtype=torch.float64)
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=length, max_size=length)))
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights[mask], torch.softmax(scores[mask], -1), atol=1e-12, rtol=1e-12)
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_row_without_positions_gives_zeros_and_zero_gradients(dtype):
    scores = torch.randn(3, 4, dtype=dtype, requires_grad=True)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    weights = masked_softmax(scores, mask)
    (weights * torch.randn_like(weights)).sum().backward()
    assert weights.dtype == dtype
    assert (weights[1] == 0).all()
    assert (scores.grad[1] == 0).all()
    assert scores.grad.isfinite().all()
    torch.testing.assert_close(weights.float().sum(-1), torch.tensor([1.0, 0.0, 1.0]), atol=1e-2, rtol=0)


def test_extreme_scores_stay_finite():
    scores = torch.tensor([[3e38, -3e38, 0.0], [-3e38, -3e38, -3e38]])
    mask = torch.tensor([[True, True, False], [True, False, True]])
    assert masked_softmax(scores, mask).tolist() == [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]


def test_the_gradient_is_right():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True, True], [False, False, False, True]]).unsqueeze(1)
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask), (scores,))
