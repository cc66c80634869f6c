"""What every feature map promises, and what each one is."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.attention.feature_maps import EluPlusOne, ReLU
from shared.attention.linear import linear_attention, linear_attention_weights

T, K = 6, 4
F64 = torch.float64


@given(x=st.floats(-80, 80, width=32))
def test_elu_plus_one_keeps_its_digits_where_the_sum_loses_them(x):
    found = EluPlusOne()(torch.tensor(x))
    expected = torch.tensor(x + 1 if x > 0 else x, dtype=F64)
    expected = expected if x > 0 else expected.exp()
    assert found > 0
    torch.testing.assert_close(found.double(), expected, atol=0, rtol=1e-6)


def test_a_query_of_very_small_features_still_attends():
    phi = EluPlusOne()
    q, k = torch.full((1, 1, 1, K), -40.0), torch.tensor([[[[0.0] * K, [1.0] * K]]])
    assert not (torch.nn.functional.elu(q) + 1).any()
    a = linear_attention_weights(phi.queries(q), phi.keys(k).values)
    torch.testing.assert_close(a.flatten(), torch.tensor([1 / 3, 2 / 3]))


def test_without_epsilon_a_query_may_find_nothing():
    x, v = torch.rand(1, 1, T, K), torch.randn(1, 1, T, K)
    for epsilon in (0.0, 1e-3):
        phi = ReLU(epsilon)
        out = linear_attention(phi.queries(-x), phi.keys(x).values, v)
        assert out.isfinite().all()
        assert bool(out.any()) == (epsilon > 0)
