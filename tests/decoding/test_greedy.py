import pytest
import torch

from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.errors import ReplicationError
from tests.decoding.hashed_decoder import (
    BEGIN,
    END,
    PADDING,
    UNKNOWN,
    HashedDecoder,
    attention_of,
    limits,
    log_probability,
    start,
)


def test_follows_the_most_probable_symbol() -> None:
    state = start(4, 7, seed=1)
    found = greedy_search(HashedDecoder(), state, limits([0] * 4, [12] * 4), attention=True)
    for source in range(4):
        length = int(found.lengths[source, 0])
        tokens = tuple(found.tokens[source, 0, :length].tolist())
        for step, symbol in enumerate(tokens):
            scores = {s: log_probability(state, source, (*tokens[:step], s)) for s in range(7)}
            allowed = {s: score for s, score in scores.items() if s not in (BEGIN, PADDING)}
            assert symbol == max(allowed, key=allowed.__getitem__)
        assert float(found.log_probs[source, 0]) == pytest.approx(log_probability(state, source, tokens), rel=1e-5)
        assert found.attention[source, 0, :length].tolist() == attention_of(state, source, tokens)
        assert not found.attention[source, 0, length:].any()
        assert (found.tokens[source, 0, length:] == PADDING).all()


def test_sources_that_ended_leave_the_batch() -> None:
    decoder = HashedDecoder()
    found = greedy_search(decoder, start(6, 6, seed=3, end_bias=1.0), limits([0] * 6, [9] * 6))
    lengths = found.lengths[:, 0]
    assert [rows for rows, _ in decoder.shapes] == [int((lengths > t).sum()) for t in range(int(lengths.max()))]
    assert len(set(lengths.tolist())) > 1


def test_minimum_maximum_and_forbidden_symbols_hold() -> None:
    state = start(5, 6, seed=4, end_bias=4.0)
    found = greedy_search(HashedDecoder(), state, limits([3, 0, 9, 2, 1], [8, 8, 6, 2, 0], forbidden=(UNKNOWN,)))
    lengths = found.lengths[:, 0].tolist()
    assert lengths[0] >= 4
    assert lengths[2:] == [6, 2, 1]
    assert found.finished[:, 0].tolist() == [True, True, False, False, False]
    assert not (found.tokens == UNKNOWN).any()


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
    with pytest.raises(ReplicationError, match="NaN"):
        greedy_search(HashedDecoder(), state, limits([0, 0], [3, 3]))


def test_begin_end_and_padding_may_be_one_symbol() -> None:
    constraints = Constraints(END, END, END, torch.tensor([1]), torch.tensor([6]))
    found = greedy_search(HashedDecoder(), start(1, 6, seed=2, end_bias=3.0), constraints)
    assert found.finished.all()
    assert int(found.tokens[0, 0, found.lengths[0, 0] - 1]) == END
