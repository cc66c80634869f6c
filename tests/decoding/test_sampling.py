import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from shared.decoding.sampling import greedy_search, most_probable, sample
from shared.errors import ReplicationError
from tests.decoding.hashed_decoder import (
    BEGIN,
    CELLS,
    END,
    PADDING,
    UNKNOWN,
    HashedDecoder,
    State,
    limits,
    log_probability,
    pick,
    start,
)

DRAWS = 3000
SELECTIONS = [
    {}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.7}, {"temperature": 2.0, "top_p": 0.5},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.6},
]  # fmt: skip


def draws(state: State, seed: int, **selection) -> list[tuple[int, ...]]:
    """Hypotheses of at most two symbols from as many copies of the first source."""
    found = sample(
        HashedDecoder(), pick(state, [0] * DRAWS), limits([0] * DRAWS, [2] * DRAWS),
        generator=torch.Generator().manual_seed(seed), **selection,
    )  # fmt: skip
    return [tuple(row[:n]) for row, n in zip(found.tokens[:, 0].tolist(), found.lengths[:, 0].tolist(), strict=True)]


def next_symbol(
    log_probs: list[float], temperature: float = 1.0, top_k: int = 99, top_p: float = 1.0
) -> dict[int, float]:
    """Each symbol's probability, from the definitions."""
    weights = {s: math.exp(x / temperature) for s, x in enumerate(log_probs)}
    weights = {s: w for s, w in weights.items() if s not in (BEGIN, PADDING)}
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)[:top_k]
    total, chosen = sum(weights[s] for s in ranked), []
    while sum(weights[s] for s in chosen) < top_p * total * (1 - 1e-9):
        chosen.append(ranked.pop(0))
    return {s: weights[s] / sum(weights[s] for s in chosen) for s in chosen}


def outcomes(state: State, **selection) -> dict[tuple[int, ...], float]:
    """Every hypothesis of at most two symbols with its probability."""
    table, first = state.log_probs[0], (BEGIN + 1) % CELLS
    found = {}
    for a, p in next_symbol(table[first].tolist(), **selection).items():
        if a == END:
            found[(a,)] = p
            continue
        for b, q in next_symbol(table[(first * 31 + a + 1) % CELLS].tolist(), **selection).items():
            found[(a, b)] = p * q
    return found


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_frequencies_are_the_probabilities(selection):
    """A right sampler fails one seed in 10,000 for each selection; the seeds are fixed."""
    state = start(1, 6, seed=3)
    state.log_probs.mul_(0.5)  # nearer to uniform, so that every outcome comes often enough
    state.log_probs.copy_(state.log_probs.log_softmax(-1))
    probabilities = outcomes(state, **selection)
    found = draws(state, seed=1, **selection)
    assert set(found) <= set(probabilities)  # nothing from outside the selected symbols
    counts = [found.count(outcome) for outcome in probabilities]
    expected = [DRAWS * p / sum(probabilities.values()) for p in probabilities.values()]
    assert min(expected) > 5
    assert chisquare(counts, expected).pvalue > 1e-4
    if selection:  # and the test is able to tell a selection from none
        plain = outcomes(state)
        others = [DRAWS * plain[outcome] / sum(plain[o] for o in probabilities) for outcome in probabilities]
        assert len(probabilities) < len(plain) or chisquare(counts, others).pvalue < 1e-6


@given(logits=st.lists(st.sampled_from([0.0, -1.0, -1.5, -2.0, -4.0]), min_size=5, max_size=5),
       k=st.integers(1, 7), p=st.sampled_from([0.1, 0.5, 0.9, 1.0]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_most_probable_symbols_are_the_fewest(logits: list[float], k: int, p: float) -> None:
    selected = most_probable(torch.tensor([logits]), top_k=k, top_p=p)[0]
    ranked = sorted(range(5), key=lambda s: (-logits[s], s))[:k]
    weights = torch.tensor(logits)[ranked].double().softmax(0).tolist()
    enough = next(n for n in range(1, len(ranked) + 1) if sum(weights[:n]) >= p - 1e-9)
    assert selected.isfinite().nonzero()[:, 0].tolist() == sorted(ranked[:enough])
    assert selected[selected.isfinite()].tolist() == [logits[s] for s in sorted(ranked[:enough])]


def test_sets_by_hand():
    logits = torch.tensor([[0.125, 0.5, 0.25, 0.125]]).log()
    for p, expected in ((0.4, [1]), (0.5, [1]), (0.51, [1, 2]), (0.75, [1, 2]), (0.8, [0, 1, 2]), (1, [0, 1, 2, 3])):
        assert most_probable(logits, top_p=p)[0].isfinite().nonzero()[:, 0].tolist() == expected
    for k, expected in ((1, [1]), (2, [1, 2]), (3, [0, 1, 2]), (9, [0, 1, 2, 3])):  # of equals the lower symbol
        assert most_probable(logits, top_k=k)[0].isfinite().nonzero()[:, 0].tolist() == expected
    assert most_probable(logits, top_k=2, top_p=0.6)[0].isfinite().nonzero()[:, 0].tolist() == [1]  # of 2/3 and 1/3


@pytest.mark.parametrize("selection", [{"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-6}], ids=str)
def test_the_limits_are_greedy_search(selection):
    state, constraints = start(7, 8, seed=2), limits([0, 1, 2, 3, 0, 0, 4], [9, 8, 7, 3, 9, 1, 9], (UNKNOWN,))
    found = sample(HashedDecoder(), state, constraints, generator=torch.Generator().manual_seed(0), **selection)
    expected = greedy_search(HashedDecoder(), state, constraints)
    assert torch.equal(found.tokens, expected.tokens)
    assert torch.equal(found.log_probs, expected.log_probs)
    assert torch.equal(found.finished, expected.finished)


def test_the_same_generator_draws_the_same_and_another_does_not():
    state = start(1, 8, seed=5, end_bias=-2.0)
    first = draws(state, seed=1)
    assert draws(state, seed=1) == first
    assert draws(state, seed=2) != first


def test_scores_are_the_models_own_and_constraints_hold():
    state = start(6, 7, seed=4, end_bias=2.0)
    constraints = limits([2] * 6, [5, 5, 5, 2, 3, 5], forbidden=(UNKNOWN,))
    generator = torch.Generator().manual_seed(3)
    found = sample(HashedDecoder(), state, constraints, generator=generator, temperature=2.0, top_k=4)
    for source, (row, n) in enumerate(zip(found.tokens[:, 0].tolist(), found.lengths[:, 0].tolist(), strict=True)):
        expected = log_probability(state, source, tuple(row[:n]))
        assert float(found.log_probs[source, 0]) == pytest.approx(expected, rel=1e-5)
        assert not {BEGIN, PADDING, UNKNOWN} & set(row[:n])
        assert END not in row[:2]
        assert row[n:] == [PADDING] * (len(row) - n)
    assert found.finished[3, 0].item() is False
    assert torch.equal(found.scores, found.log_probs)


def test_sources_that_ended_leave_the_batch():
    decoder, generator = HashedDecoder(), torch.Generator().manual_seed(0)
    found = sample(decoder, start(9, 6, seed=3, end_bias=1.0), limits([0] * 9, [9] * 9), generator=generator)
    lengths = found.lengths[:, 0]
    assert [shape[0] for shape in decoder.shapes] == [int((lengths > t).sum()) for t in range(int(lengths.max()))]
    assert len(set(lengths.tolist())) > 1


@pytest.mark.parametrize("selection", [{}, {"top_p": 0.5}, {"top_k": 2}], ids=str)
def test_nan_is_refused(selection):
    state = start(2, 5, seed=0)
    state.log_probs[1] = torch.nan
    with pytest.raises(ReplicationError, match="NaN"):
        sample(HashedDecoder(), state, limits([0, 0], [3, 3]), generator=torch.Generator(), **selection)
