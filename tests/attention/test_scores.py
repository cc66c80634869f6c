"""The scores of Luong et al. by hand, what they compute once per source, and how they start."""

import math

import pytest
import torch

from shared.attention.additive import AdditiveAttention
from shared.attention.scores import (
    SCORES,
    ConcatScore,
    DotScore,
    GeneralScore,
    LocationScore,
    Score,
    build_score,
)
from shared.attention.softmax import masked_softmax
from shared.decoding.protocol import select_sources

F64 = torch.float64
H = torch.tensor([[[1.0, 2.0]]], dtype=F64)  # (1, 1, 2)
ANNOTATIONS = torch.tensor([[[3.0, 4.0], [-1.0, 0.5], [0.0, 1.0]]], dtype=F64)  # (1, 3, 2)


def scores(score, h=H, annotations=ANNOTATIONS):
    return score.scores(h, score.keys(annotations))


def set_to(parameter, values):
    parameter.data = torch.tensor(values, dtype=F64)


def test_dot_by_hand():
    assert scores(DotScore()).tolist() == [[[11.0, 0.0, 2.0]]]


def test_general_by_hand_and_from_one_width_to_another():
    score = GeneralScore(query_size=2, key_size=3)
    set_to(score.w_a, [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    annotations = torch.tensor([[[1.0, 1.0, 1.0], [0.0, 2.0, -1.0]]], dtype=F64)
    # h W_a = [1, 6, 4]
    assert scores(score, annotations=annotations).tolist() == [[[11.0, 8.0]]]


def test_concat_by_hand():
    score = ConcatScore(query_size=2, key_size=2, alignment_size=1)
    set_to(score.w_a, [[1.0], [-0.5]])  # the half of W_a for h: 1 - 1 = 0
    set_to(score.u_a, [[0.1], [0.2]])  # the half for h̄: 1.1, 0, 0.2
    set_to(score.v_a, [2.0])
    found = scores(score)[0, 0].tolist()
    energies = [2 * math.tanh(a) for a in (1.1, 0.0, 0.2)]
    assert [s - found[1] for s in found] == pytest.approx([e - energies[1] for e in energies], abs=1e-12)


def test_location_takes_the_rows_that_the_source_has():
    score = LocationScore(query_size=2, positions=4)
    set_to(score.w_a, [[1.0, 0.0, 2.0, 9.0], [0.0, 3.0, 1.0, 9.0]])
    assert scores(score).tolist() == [[[1.0, 6.0, 4.0]]]


def test_location_never_attends_to_words_from_its_last_position_on():
    score = LocationScore(query_size=2, positions=2).to(F64)
    assert scores(score)[0, 0].isinf().tolist() == [False, False, True]
    weights = masked_softmax(scores(score), torch.tensor([[[True] * 3], [[False] * 3]]))
    assert float(weights[0, 0, :2].detach().sum()) == pytest.approx(1)
    assert (weights[0, 0, 2], weights[1].sum()) == (0, 0)
    weights.square().sum().backward()
    assert score.w_a.grad.isfinite().all()


def test_location_does_not_see_what_the_source_says():
    score = LocationScore(query_size=2, positions=8).to(F64)
    annotations = ANNOTATIONS.clone().requires_grad_()
    found = scores(score, annotations=annotations)
    assert torch.equal(found, scores(score, annotations=torch.full_like(annotations, torch.nan)))
    assert torch.autograd.grad(found.sum(), annotations, allow_unused=True) == (None,)


def test_only_location_is_not_based_on_content():
    based = {name: build_score(name, size=4, positions=5).content_based for name in SCORES}
    assert based == {"dot": True, "general": True, "concat": True, "location": False}


def test_concat_is_additive_attention():
    ours = ConcatScore(query_size=2, key_size=2, alignment_size=5).to(F64)
    theirs = AdditiveAttention(query_size=2, key_size=2, alignment_size=5).to(F64)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(scores(ours), scores(theirs))


@pytest.mark.parametrize("name", SCORES)
def test_keys_are_of_the_source_alone_and_can_be_selected(name):
    score = build_score(name, size=3, positions=5).to(F64)
    queries, annotations = torch.randn(4, 2, 3, dtype=F64), torch.randn(4, 6, 3, dtype=F64)
    kept = torch.tensor([1, 3])
    keys = select_sources(score.keys(annotations), kept)
    some = score.scores(queries[kept], keys)
    assert some.shape == (2, 2, 6)
    torch.testing.assert_close(some, score.scores(queries, score.keys(annotations))[kept], atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("dot", {}),
        ("general", {"w_a": (40, 40)}),
        ("concat", {"w_a": (40, 40), "u_a": (40, 40), "v_a": (40,)}),
        ("location", {"w_a": (40, 50)}),
    ],
)
def test_weights_are_uniform_and_there_is_no_bias(name, weights):
    score = build_score(name, size=40, positions=50)
    assert isinstance(score, Score)
    assert {key: tuple(value.shape) for key, value in score.named_parameters()} == weights
    for bound in (0.1, 0.5):
        for value in (parameter.detach() for parameter in score.parameters()):
            assert 0.85 * bound < float(value.abs().max()) <= bound
            assert float(value.std()) == pytest.approx(bound / math.sqrt(3), rel=4 / math.sqrt(value.numel()))
        score.reset_parameters(0.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [("bilinear", "one of: dot, general, concat, location"), ("location", "needs `positions`")],
)
def test_what_cannot_be_built_says_why(name, message):
    with pytest.raises(ValueError, match=message):
        build_score(name, size=4)
