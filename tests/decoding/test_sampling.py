"""Draws of one symbol: as often as is probable, from the most probable ones alone if asked for, the same again."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from shared.decoding.sampling import draw, most_probable
from tests.refused import assert_refused

DRAWS = 3000
LOG_PROBS = torch.tensor([-math.inf, 1.0, 0.2, 0.9, -0.4, 0.5]).log_softmax(0)  # the first may not come
SELECTIONS = [
    {}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.7}, {"temperature": 2.0, "top_p": 0.5},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.6},
]  # fmt: skip


def draws(seed: int, **selection) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return draw(LOG_PROBS.expand(DRAWS, -1), generator=generator, **selection)[:, 0].tolist()


def probabilities(temperature: float = 1.0, top_k: int = 99, top_p: float = 1.0) -> dict[int, float]:
    """Each symbol's probability, from the definitions."""
    weights = {s: math.exp(x / temperature) for s, x in enumerate(LOG_PROBS.tolist()) if x > -math.inf}
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)[:top_k]
    total, chosen = sum(weights[s] for s in ranked), []
    while sum(weights[s] for s in chosen) < top_p * total * (1 - 1e-9):
        chosen.append(ranked.pop(0))
    return {s: weights[s] / sum(weights[s] for s in chosen) for s in chosen}


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_frequencies_are_the_probabilities(selection):
    """A right sampler fails one seed in 10,000 for each selection; the seeds are fixed."""
    expected, found = probabilities(**selection), draws(seed=1, **selection)
    assert set(found) <= set(expected)  # nothing from outside the selected symbols
    counts = [found.count(symbol) for symbol in expected]
    assert chisquare(counts, [DRAWS * p for p in expected.values()]).pvalue > 1e-4
    if selection:  # and the test is able to tell a selection from none
        plain = probabilities()
        others = [DRAWS * plain[symbol] / sum(plain[s] for s in expected) for symbol in expected]
        assert len(expected) < len(plain) or chisquare(counts, others).pvalue < 1e-6


@given(logits=st.lists(st.sampled_from([0.0, -1.0, -1.5, -2.0, -4.0]), min_size=5, max_size=5),
       k=st.integers(1, 7), p=st.sampled_from([0.1, 0.5, 0.9, 1.0]))  # fmt: skip
@settings(max_examples=60)
def test_the_most_probable_symbols_are_the_fewest(logits: list[float], k: int, p: float) -> None:
    selected = most_probable(torch.tensor([logits]), top_k=k, top_p=p)[0]
    ranked = sorted(range(5), key=lambda s: (-logits[s], s))[:k]
    weights = torch.tensor(logits)[ranked].double().softmax(0).tolist()
    enough = next(n for n in range(1, len(ranked) + 1) if sum(weights[:n]) >= p - 1e-9)
    assert selected.isfinite().nonzero()[:, 0].tolist() == sorted(ranked[:enough])
    assert selected[selected.isfinite()].tolist() == [logits[s] for s in sorted(ranked[:enough])]


@pytest.mark.parametrize("selection", [{"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-6}], ids=str)
def test_in_the_limit_it_is_the_most_probable_symbol(selection):
    assert {*draws(seed=0, **selection)} == {1}


@pytest.mark.parametrize("selection", [{}, {"top_p": 0.5}, {"top_k": 2}], ids=str)
def test_nan_is_refused(selection):
    assert_refused("NaN", draw, torch.full((2, 5), torch.nan), generator=torch.Generator(), **selection)
