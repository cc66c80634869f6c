"""Several models that predict as one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from replications.bahdanau.model import RNNsearch
from replications.luong.model import EncoderDecoder
from shared.decoding.beam import beam_search
from shared.decoding.ensemble import Ensemble
from tests.checklist import spread
from tests.decoding.hashed_decoder import HashedDecoder, limits, pick, start
from tests.decoding.naive_beam import naive_beam_search

seeds = st.lists(st.integers(0, 9999), min_size=1, max_size=4, unique=True)


SIZES = {"source_vocabulary": 9, "target_vocabulary": 9, "embedding_size": 6, "hidden_size": 6}


def member(seed: int, *, with_attention: bool = True) -> nn.Module:
    """A small model with the whole contract."""
    torch.manual_seed(seed)
    attentive = RNNsearch(**SIZES, maxout_size=4, alignment_size=5)
    return spread(attentive if with_attention else EncoderDecoder(**SIZES, layers=1), 0.5).float()


SOURCE = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
MASK = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[1, 5, 6], [1, 8, 3]])


def outputs(model):
    """What ``forward`` and ``step`` predict, probabilities and weights."""
    with torch.no_grad():
        logits, weights = model(SOURCE, MASK, TARGET)
        log_p, attention, state = model.step(TARGET[:, :1], model.start(SOURCE, MASK))
        second, *_ = model.step(TARGET[:, 1:2], state)
    return logits.softmax(-1), weights, log_p.exp(), attention, second.exp()


def test_probabilities_and_weights_are_the_means():
    members = [member(seed) for seed in (1, 2, 3)]
    for joint, *alone in zip(outputs(Ensemble(members)), *(outputs(m) for m in members), strict=True):
        torch.testing.assert_close(joint, torch.stack(alone).mean(0))
        torch.testing.assert_close(joint.sum(-1), torch.ones(joint.shape[:-1]))


def test_members_without_attention_have_no_part_in_the_weights():
    attentive, plain = member(1), member(2, with_attention=False)
    torch.testing.assert_close(outputs(Ensemble([plain, attentive]))[1], outputs(attentive)[1])
    assert outputs(Ensemble([plain]))[1] is None


def test_what_no_member_allows_stays_impossible():
    model = member(1)
    with torch.no_grad():
        model.output.w_o.bias[4] = -torch.inf
    assert (outputs(Ensemble([model, model]))[0][..., 4] == 0.0).all()


@given(seeds=seeds, beam=st.integers(1, 5), bias=st.sampled_from([-1.0, 0.0, 2.0]))
@settings(max_examples=50)
def test_searched_in_a_batch_and_one_source_at_a_time(seeds: list[int], beam: int, bias: float) -> None:
    ensemble = Ensemble([HashedDecoder() for _ in seeds])
    states = tuple(start(3, 7, seed, end_bias=bias) for seed in seeds)
    minimum, maximum = [0, 2, 1], [9, 6, 12]
    found = beam_search(ensemble, states, limits(minimum, maximum), beam=beam, attention=True)
    for source in range(3):
        alone = limits([minimum[source]], [maximum[source]])
        state = tuple(pick(state, [source]) for state in states)
        (expected, *_) = naive_beam_search(ensemble, state, alone, beam=beam)
        length = int(found.lengths[source, 0])
        assert tuple(found.tokens[source, 0, :length].tolist()) == expected.tokens
        assert float(found.log_probs[source, 0]) == pytest.approx(expected.log_prob, rel=1e-5)
        torch.testing.assert_close(found.attention[source, 0, :length], torch.stack(expected.attention))
