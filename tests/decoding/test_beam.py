from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decoding.beam import beam_search
from shared.decoding.constraints import length_divisor
from shared.decoding.protocol import Hypotheses
from shared.decoding.sampling import greedy_search
from tests.decoding import hashed_decoder as hashed
from tests.decoding.naive_beam import naive_beam_search

rankings = st.sampled_from([("none", 0.6), ("mean", 0.6), ("gnmt", 0.6), ("gnmt", 0.0), ("gnmt", 1.0)])


def sequences(found: Hypotheses, source: int) -> list[tuple[int, ...]]:
    return [
        tuple(row[:length])
        for row, length in zip(found.tokens[source].tolist(), found.lengths[source].tolist(), strict=True)
        if length
    ]


@given(seed=st.integers(0, 999), ranking=rankings, minimum=st.integers(0, 2), bias=st.sampled_from([-1.0, 0, 2.0]))
@settings(max_examples=40)
def test_a_wide_enough_beam_is_exhaustive(seed: int, ranking: tuple, minimum: int, bias: float) -> None:
    kind, alpha = ranking
    state = hashed.start(2, 6, seed, end_bias=bias)
    constraints = hashed.limits([minimum, 0], [4, 3], forbidden=(hashed.UNKNOWN,))
    found = beam_search(
        hashed.HashedDecoder(), state, constraints, beam=6**4, normalisation=kind, alpha=alpha, n_best=3, attention=True
    )
    for source in range(2):
        scores = {
            tokens: log_prob / float(length_divisor(torch.tensor(len(tokens)), kind, alpha))
            for tokens, log_prob in hashed.finished_sequences(state, source, constraints).items()
        }
        expected = sorted(scores, key=scores.__getitem__, reverse=True)[:3]
        assert sequences(found, source) == expected
        assert found.scores[source].tolist() == pytest.approx([scores[t] for t in expected], rel=1e-5)
        assert found.finished[source].all()
        for rank, tokens in enumerate(expected):
            assert found.attention[source, rank, : len(tokens)].tolist() == hashed.attention_of(state, source, tokens)
            assert not found.attention[source, rank, len(tokens) :].any()


@given(
    seed=st.integers(0, 9999),
    beam=st.integers(1, 6),
    n_best=st.integers(1, 4),
    ranking=rankings,
    bias=st.sampled_from([-2.0, 0.0, 1.0, 3.0]),
    bounds=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12)), min_size=1, max_size=6),
)
@settings(max_examples=150)
def test_batched_equals_one_source_at_a_time(
    seed: int, beam: int, n_best: int, ranking: tuple, bias: float, bounds: list[tuple[int, int]]
) -> None:
    options = {"beam": beam, "n_best": n_best, "normalisation": ranking[0], "alpha": ranking[1]}
    state = hashed.start(len(bounds), 7, seed, end_bias=bias)
    minimum, maximum = [low for low, _ in bounds], [high for _, high in bounds]
    found = beam_search(hashed.HashedDecoder(), state, hashed.limits(minimum, maximum), attention=True, **options)
    for source in range(len(bounds)):
        alone = hashed.limits(minimum[source : source + 1], maximum[source : source + 1])
        expected = naive_beam_search(hashed.HashedDecoder(), hashed.pick(state, [source]), alone, **options)
        count = len(expected)
        assert sequences(found, source) == [h.tokens for h in expected]
        assert found.log_probs[source, :count].tolist() == pytest.approx([h.log_prob for h in expected], rel=1e-5)
        assert (found.log_probs[source, count:] == -torch.inf).all()
        assert found.finished[source, :count].tolist() == [h.tokens[-1] == hashed.END for h in expected]
        for rank, hypothesis in enumerate(expected):
            weights = found.attention[source, rank, : len(hypothesis.tokens)]
            assert torch.equal(weights, torch.stack(hypothesis.attention))


@given(seed=st.integers(0, 9999), ranking=rankings, minimum=st.integers(0, 3), one_symbol=st.booleans())
@settings(max_examples=40)
def test_one_beam_is_greedy(seed: int, ranking: tuple, minimum: int, one_symbol: bool) -> None:
    """Where begin, end and padding are one symbol, too."""
    constraints = hashed.limits([minimum] * 5, [3, 5, 8, 13, 1], forbidden=(hashed.UNKNOWN,))
    if one_symbol:
        constraints = replace(constraints, begin=hashed.END, padding=hashed.END)
    greedy = greedy_search(hashed.HashedDecoder(), hashed.start(5, 6, seed), constraints, attention=True)
    found = beam_search(
        hashed.HashedDecoder(), hashed.start(5, 6, seed), constraints,
        beam=1, normalisation=ranking[0], alpha=ranking[1], attention=True,
    )  # fmt: skip
    assert torch.equal(found.tokens, greedy.tokens)
    assert torch.equal(found.lengths, greedy.lengths)
    assert torch.equal(found.log_probs, greedy.log_probs)
    assert torch.equal(found.finished, greedy.finished)
    assert torch.equal(found.attention, greedy.attention)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("ties", [False, True])
def test_a_gpu_finds_the_same(ties: bool) -> None:
    state, constraints = hashed.start(6, 7, seed=8), hashed.limits([0] * 6, [5, 9, 6, 11, 7, 8])
    if ties:
        state.log_probs.fill_(-1.0)
    moved = hashed.State(state.log_probs.cuda(), state.attention.cuda(), state.prefix.cuda())
    there = replace(constraints, minimum=constraints.minimum.cuda(), maximum=constraints.maximum.cuda())
    found = beam_search(hashed.HashedDecoder(), moved, there, beam=4, n_best=3, attention=True)
    expected = beam_search(hashed.HashedDecoder(), state, constraints, beam=4, n_best=3, attention=True)
    assert torch.equal(found.tokens.cpu(), expected.tokens)
    assert torch.allclose(found.scores.cpu(), expected.scores)
    assert torch.equal(found.attention.cpu(), expected.attention)


def test_the_search_is_over_once_no_prefix_can_win() -> None:
    decoder = hashed.HashedDecoder()
    found = beam_search(decoder, hashed.start(3, 7, seed=1, end_bias=20.0), hashed.limits([0, 2, 0], [50] * 3), beam=5)
    assert found.lengths.tolist() == [[1], [3], [1]]
    assert decoder.shapes == [(3, 1), (1, 4), (1, 5)]  # four words may come first, then the five best pairs


def test_ended_sources_and_prefixes_leave_the_batch() -> None:
    decoder = hashed.HashedDecoder()
    beam_search(
        decoder, hashed.start(8, 7, seed=1, end_bias=2.0), hashed.limits([0] * 8, [3 * n for n in range(1, 9)]), beam=5
    )
    rows = [rows for rows, _ in decoder.shapes]
    assert decoder.shapes[0] == (8, 1)
    assert rows == sorted(rows, reverse=True)
    assert len(set(rows)) > 2


def test_ties_go_to_the_better_prefix_and_the_lower_symbol() -> None:
    state = hashed.start(1, 6, seed=0)
    state.log_probs.fill_(-1.0)
    found = beam_search(hashed.HashedDecoder(), state, hashed.limits([2], [4]), beam=3, n_best=3)
    assert sequences(found, 0) == [(3, 3, hashed.END), (3, 3, 3, hashed.END)]


def test_where_nothing_may_come_there_is_no_hypothesis() -> None:
    found = beam_search(
        hashed.HashedDecoder(), hashed.start(1, 4, 0), hashed.limits([5], [3], forbidden=(hashed.UNKNOWN,)), beam=2
    )
    assert found.lengths.tolist() == [[0]]
    assert not found.finished.any()
    assert found.best() == [[]]
