"""Adaptive spans: the mask and the equations by hand, what leaves a span, what a span costs; and the checklist."""

import math
from contextlib import nullcontext

import pytest
import torch

from replications.adaptive_span.cost import Cost, numbers
from replications.adaptive_span.model import AdaptiveSpanTransformer, attend, soft_mask
from shared.attention.twins import plain_equations
from shared.decoding.protocol import Reach
from tests.replications.studied import measured


def network(**settings) -> AdaptiveSpanTransformer:
    torch.manual_seed(1)
    sizes = {"vocabulary": 9, "layers": 2, "heads": 2, "width": 8, "hidden": 12, "limit": 6, "ramp": 2}
    return AdaptiveSpanTransformer(**sizes | {"penalty": 0.01, "dropout": 0.0} | settings).double()


def with_spans(model: AdaptiveSpanTransformer, *spans: float) -> AdaptiveSpanTransformer:
    for layer in model.layers:
        layer.attention.share.data[:] = torch.tensor(spans, dtype=torch.float64) / model.p.size(0)
    return model


def test_the_mask_falls_over_the_ramp() -> None:
    mask = soft_mask(torch.arange(9).unsqueeze(0), torch.tensor([3.0, 0.0]), 4)
    assert mask[0, 0].tolist() == [1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0]
    assert mask[1, 0].tolist() == [1, 0.75, 0.5, 0.25, 0, 0, 0, 0, 0]


def test_the_equations_by_hand() -> None:
    """One query after three keys, width 1, L = 2, so that the first key is out of reach; R = 2 and z = 0.5."""
    q, k, v = (torch.tensor([each]).view(1, 1, -1, 1) for each in ([2.0], [9.0, 1.0, -0.5, 7.0], [9.0, 3.0, 5.0, 9.0]))
    p = torch.tensor([[0.3], [0.1]])  # of the distances 1 and 2
    near, far = math.exp(2 * (-0.5 + 0.3)), math.exp(2 * (1.0 + 0.1))
    for z, ramp, (m_near, m_far) in ((None, 0, (1, 1)), (torch.tensor([0.5]), 2, (0.75, 0.25))):
        expected = (5 * m_near * near + 3 * m_far * far) / (m_near * near + m_far * far)
        for context in (nullcontext(), plain_equations()):
            with context:
                assert attend(q, k, v, p, z, ramp, 0.0).item() == pytest.approx(expected, rel=1e-6)


def test_nothing_beyond_the_span_is_seen() -> None:
    """Two layers whose heads look at three symbols and at two before them see six before, and themselves."""
    model, text = with_spans(network(), 2.0, 1.0).eval(), torch.randint(9, (1, 12))
    assert model.layers[0].attention.spans().tolist() == [3, 2]
    found = model.states(text, None)[0, -1]
    for changed in range(12):
        other = text.clone()
        other[0, changed] = (other[0, changed] + 1) % 9
        assert torch.equal(model.states(other, None)[0, -1], found) == (changed < 12 - 1 - 6)


def test_a_cache_of_the_span_is_as_good_as_all() -> None:
    model, text = with_spans(network(), 2.0, 1.0).eval(), torch.randint(9, (2, 12))
    cache, whole = model.memory(2, Reach(3)), model.states(text, None)
    pieces = torch.cat([model.states(piece, cache) for piece in text.split(4, dim=1)], dim=1)
    torch.testing.assert_close(pieces, whole)
    short = model.memory(2, Reach(2))
    assert not torch.allclose(torch.cat([model.states(piece, short) for piece in text.split(4, dim=1)], dim=1), whole)


def test_the_loss_has_the_mean_span_of_each_layer_in_training_alone() -> None:
    model = with_spans(network(), 3.0, 1.0)
    inputs, targets = torch.randint(9, (2, 5)), torch.randint(9, (2, 5))
    trained, judged = model(inputs, targets), model.eval()(inputs, targets)
    torch.testing.assert_close(trained - judged, torch.full_like(judged, 2 * 0.01 * 2.0))
    (slope,) = torch.autograd.grad(model.span_loss(), [model.layers[0].attention.share])
    torch.testing.assert_close(slope, torch.full_like(slope, 0.01 * 6 / 2))
    fixed = network(ramp=None, penalty=0.0)
    torch.testing.assert_close(fixed(inputs, targets), fixed.eval()(inputs, targets))


def test_spans_stay_between_nothing_and_the_limit() -> None:
    model = with_spans(network(), -1.0, 99.0).train()
    assert model.layers[0].attention.z().tolist() == [0, 6]
    assert model.layers[0].attention.share.tolist() == [0, 1]
    assert model.layers[0].attention.spans().tolist() == [1, 6]


def test_what_spans_cost() -> None:
    found = numbers(with_spans(network(), 4.0, 0.0).eval())
    assert found["span@1-1"] == found["span@2-1"] == found["span_longest"] == 5
    assert found["span_mean"] == 3
    assert found["heads_long"] == 0.5
    assert found["operations"] == 3 * 4 * 2 * (5 + 1)
    assert found["cached"] == 8 * (5 + 5)
    assert numbers(network(ramp=None, penalty=0.0))["operations"] == 3 * 4 * 4 * 6


def test_operations_are_counted_in_proportion_to_the_span() -> None:
    found = measured(Cost(), {"study": "cost", "spans": [8, 32], "limit": 64, "heads": 2, "width": 16})
    assert found == {f"operations@{span}": (3 * span + 4) / (3 * span) for span in (8, 32)}
