"""The Transformer's fast forms against its equations, and its caches against recomputing every prefix by these."""

import pytest
import torch

from benchmarks.steps import Recomputing
from shared.attention.twins import plain_equations
from shared.decoding.beam import beam_search
from shared.decoding.sampling import greedy_search
from shared.layers.positions import LearnedPositions, NoPositions
from tests.parity.transformer_case import F64, TOLERANCES, VOCABULARY, WIDTH, batch, limits, transformer

VARIANTS = {
    "base": {},
    "one head": {"heads": 1, "key_size": 8, "value_size": 8},
    "narrow keys": {"heads": 4, "key_size": 1, "value_size": 3},
    "one layer": {"layers": 1},
    "unscaled": {"scaled": False},
    "learned positions": {"positions": LearnedPositions(count=16, width=WIDTH)},
    "no positions": {"positions": NoPositions()},
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


def assert_same_gradients(model, found, expected, tolerance):
    cotangent = torch.randn_like(expected)
    parameters = dict(model.named_parameters())
    ours, plain = (torch.autograd.grad(y, list(parameters.values()), cotangent) for y in (found, expected))
    for name, mine, other in zip(parameters, ours, plain, strict=True):
        assert mine.abs().max() > 0, name
        torch.testing.assert_close(mine, other, atol=10 * tolerance, rtol=10 * tolerance, msg=name)


@variants
@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("training", [False, True])
def test_values_and_gradients_are_those_of_the_equations(changes, dtype, tolerance, training):
    ours = transformer(**changes).to(dtype).train(training)
    source, mask, target = batch()
    found, weights = ours(source, mask, target)
    with plain_equations():
        expected, expected_weights = ours(source, mask, target)
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
    assert (weights is None) == training  # the fused path has none
    if weights is not None:
        torch.testing.assert_close(weights, expected_weights, atol=tolerance, rtol=tolerance)
    assert_same_gradients(ours, found, expected, tolerance)


def both(changes):
    ours = transformer(**changes).to(F64).eval()
    return ours, Recomputing(ours)


def assert_same_hypotheses(found, expected):
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=1e-5, rtol=0)
    if found.attention is not None:
        torch.testing.assert_close(found.attention, expected.attention, atol=1e-10, rtol=0)


@variants
def test_searches_with_caches_find_what_recomputing_finds(changes):
    source, mask, _ = batch()
    searches = [
        lambda model, state: greedy_search(model, state, limits(3, 0, 15), attention=True),
        lambda model, state: beam_search(model, state, limits(3, 2, 15), beam=4, n_best=3, attention=True),
        lambda model, state: beam_search(model, state, limits(3, 15, 15), beam=5, normalisation="gnmt"),
    ]
    with torch.no_grad():
        for search in searches:
            found, expected = (search(model, model.start(source, mask)) for model in both(changes))
            assert_same_hypotheses(found, expected)


def test_caches_grow_beyond_what_they_begin_with():
    ours, plain = both({})
    source, mask, _ = batch()
    with torch.no_grad():
        found, expected = (
            beam_search(model, model.start(source, mask), limits(3, 40, 40), beam=4) for model in (ours, plain)
        )
    assert found.tokens.size(2) * 4 > 2 * 64
    assert_same_hypotheses(found, expected)


@pytest.mark.parametrize("seed", range(5))
def test_any_choice_of_sources_and_beams_is_followed(seed):
    """Steps and reorderings that no search would make: beams that come back, die out and multiply."""
    torch.manual_seed(seed)
    ours, plain = both({})
    source, mask, _ = batch()
    rows, beams = 3, 1
    with torch.no_grad():
        states = [model.start(source, mask) for model in (ours, plain)]
        for step in range(90):
            tokens = torch.randint(1, VOCABULARY, (rows, beams))
            (found, weights, mine), (expected, other_weights, other) = (
                model.step(tokens, state) for model, state in zip((ours, plain), states, strict=True)
            )
            torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
            torch.testing.assert_close(weights, other_weights, atol=1e-10, rtol=0)
            kept = torch.arange(rows)[torch.rand(rows) < 0.8] if step in (4, 40, 70) else None
            kept = None if kept is None or not len(kept) else kept
            rows = rows if kept is None else len(kept)
            chosen = torch.randint(beams, (rows, int(torch.randint(1, 6, ()))))
            beams = chosen.size(1)
            states = [model.reorder(state, kept, chosen) for model, state in ((ours, mine), (plain, other))]


@torch.no_grad()
def test_slots_that_no_beam_sees_are_closed_up():
    model, _ = both({})
    source, mask, _ = batch()
    state = model.reorder(model.start(source, mask), None, torch.zeros(3, 4, dtype=torch.long))
    for _ in range(300):
        _, _, state = model.step(torch.full((3, 4), 5), state)
        state = model.reorder(state, None, torch.randint(4, (3, 4)))
    assert 300 <= state.cache.used < 1.6 * 300  # of 1,200 that were written
