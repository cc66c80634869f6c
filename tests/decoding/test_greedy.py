"""Greedy search, and the constraints that all searches keep."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.decoding.constraints import Constraints, best_first, length_divisor
from shared.decoding.sampling import greedy_search
from tests.decoding.hashed_decoder import END, HashedDecoder, limits, start
from tests.refused import assert_refused


def test_sources_that_ended_leave_the_batch() -> None:
    decoder = HashedDecoder()
    found = greedy_search(decoder, start(6, 6, seed=3, end_bias=1.0), limits([0] * 6, [9] * 6))
    lengths = found.lengths[:, 0]
    assert [rows for rows, _ in decoder.shapes] == [int((lengths > t).sum()) for t in range(int(lengths.max()))]
    assert len(set(lengths.tolist())) > 1


def test_best_drops_the_end_symbol_only() -> None:
    found = greedy_search(HashedDecoder(), start(3, 6, seed=5), limits([2, 2, 9], [8, 8, 3]))
    for row, length, finished in zip(found.best(), found.lengths[:, 0], found.finished[:, 0], strict=True):
        assert len(row) == length - int(finished)
        assert END not in row


def test_attention_asked_of_a_model_without_any() -> None:
    with pytest.raises(ValueError, match="attention"):
        greedy_search(HashedDecoder(with_attention=False), start(1, 5, 0), limits([0], [3]), attention=True)


def test_nan_is_refused() -> None:
    state = start(2, 5, seed=0)
    state.log_probs[1] = torch.nan
    assert_refused("NaN", greedy_search, HashedDecoder(), state, limits([0, 0], [3, 3]))


few_values = st.lists(st.sampled_from([0.0, -0.5, -1.0, -2.0]), min_size=12, max_size=12)


@given(rows=st.lists(few_values, min_size=1, max_size=4), count=st.integers(1, 15))
def test_best_first_ranks_like_a_stable_sort(rows: list[list[float]], count: int) -> None:
    values, indices = best_first(torch.tensor(rows), count)
    for row, row_values, row_indices in zip(rows, values.tolist(), indices.tolist(), strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[:count]
        assert row_indices == expected
        assert row_values == [row[i] for i in expected]


def test_best_first_puts_the_impossible_last() -> None:
    values, indices = best_first(torch.tensor([[-torch.inf, -3.0, -torch.inf, -1.0, -torch.inf]]), 3)
    assert values.tolist() == [[-1.0, -3.0, -torch.inf]]
    assert indices[0, :2].tolist() == [3, 1]


def test_restrict_rules_out_symbols_and_early_ends() -> None:
    constraints = Constraints(0, 2, 1, torch.tensor([5, 2, 0]), torch.tensor([9, 9, 9]), forbidden=(4,))
    restricted = constraints.restrict(torch.zeros(2, 3, 6), torch.tensor([0, 2]), length=3)
    impossible = restricted.isinf().all(dim=1).tolist()  # the same for all beams
    assert impossible == [[True, True, True, False, True, False], [True, True, False, False, True, False]]
    assert torch.equal(restricted.isinf().any(dim=1), restricted.isinf().all(dim=1))


def test_restrict_returns_float32_and_spares_an_end_symbol_that_is_also_padding() -> None:
    constraints = Constraints(0, 1, 1, torch.tensor([0]), torch.tensor([9]))
    restricted = constraints.restrict(torch.zeros(1, 1, 3, dtype=torch.bfloat16), torch.tensor([0]), length=0)
    assert restricted.dtype == torch.float32
    assert restricted.tolist() == [[[-torch.inf, 0.0, 0.0]]]


def test_length_divisors_by_hand() -> None:
    length = torch.tensor([1, 7, 13])
    assert length_divisor(length, "none", 0.6).tolist() == [1, 1, 1]
    assert length_divisor(length, "mean", 0.6).tolist() == [1, 7, 13]
    assert length_divisor(length, "gnmt", 1.0).tolist() == pytest.approx([1, 2, 3])
    assert length_divisor(length, "gnmt", 0.5).tolist() == pytest.approx([1, 2**0.5, 3**0.5])
    assert length_divisor(length, "gnmt", 0.0).tolist() == [1, 1, 1]
