"""McNemar's exact test against sums over coin tosses, and by a textbook's example."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.claims.statistics import McNemar, mcnemar


def outcomes(both, only_first, only_second, neither):
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


@given(*[st.integers(0, 30)] * 4)
def test_p_is_that_of_tosses_at_least_as_uneven(both, only_first, only_second, neither):
    found = mcnemar(*outcomes(both, only_first, only_second, neither))
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(tosses, k) for k in range(fewer + 1)) / 2**tosses
    assert (found.only_first, found.only_second) == (only_first, only_second)
    assert found.p == pytest.approx(min(1, 2 * tail))


def test_of_a_worked_example():
    # Nine discordant, one against: 2 (1 + 9) / 2⁹
    assert mcnemar(*outcomes(50, 1, 8, 3)) == McNemar(1, 8, pytest.approx(20 / 512))


def test_of_a_textbook():
    # 314 patients, 121 of whom a drug cured and 59 made ill; with chi-squared, 21.4, p is 3.8e-6
    found = mcnemar(*outcomes(101, 121, 59, 33))
    assert found.p == pytest.approx(4.4e-6, rel=0.1)


def test_the_order_of_the_two_does_not_matter_to_p():
    first, second = outcomes(4, 9, 2, 1)
    assert mcnemar(first, second).p == mcnemar(second, first).p


def test_two_that_are_right_on_the_same_do_not_differ():
    assert mcnemar([1, 0, 1], [1, 0, 1]) == McNemar(0, 0, 1.0)
    assert mcnemar([], []) == McNemar(0, 0, 1.0)


def test_outcomes_of_other_examples_cannot_be_paired():
    with pytest.raises(ValueError, match="2 and 3 outcomes cannot be paired"):
        mcnemar([1, 0], [1, 0, 1])
