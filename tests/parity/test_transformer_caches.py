"""The Transformer's caches against recomputing every prefix by its equations."""

import pytest
import torch

from benchmarks.steps import Recomputing
from shared.decoding.beam import beam_search
from shared.decoding.sampling import greedy_search
from shared.layers.positions import LearnedPositions, NoPositions
from tests.parity.transformer_case import F64, WIDTH, batch, limits, transformer

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
