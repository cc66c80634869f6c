"""The Performer beside the Transformer whose weights it has: what it estimates, and when it takes over."""

import pytest
import torch

from tests.replications.small_sequences import F64, PERFORMERS, N, drawn, padded, small, symbols

ESTIMATORS = ("positive", "hyperbolic", "trigonometric")
estimators = pytest.mark.parametrize("name", ESTIMATORS)
estimated = pytest.mark.parametrize("name", [name for name in PERFORMERS if name != "exact"])
both_ways = pytest.mark.parametrize("causal", [True, False], ids=["causal", "both ways"])


def with_weights_of(model, name, **changes):
    """Another kind of attention on the same weights; what is drawn is its own."""
    other = small(name, **changes)
    found = other.load_state_dict(dict(model.named_parameters()), strict=False)
    assert not found.unexpected_keys
    return other


def exact(model):
    return [bool(attention.exact) for attention in model.attentions]


# When features are drawn


@estimators
@pytest.mark.parametrize(("every", "at"), [(1, {0, 1, 2, 3, 4, 5, 6}), (3, {0, 3, 6}), (None, set())])
def test_features_are_drawn_anew_as_often_as_is_asked(name, every, at):
    model, before = small(name, redraw_every=every), None
    for number in range(7):
        before = drawn(model)
        model.at_update(number)
        after = drawn(model)
        changed = {not torch.equal(after[key], numbers) for key, numbers in before.items()}
        assert changed == {number in at}


@estimators
def test_what_is_drawn_is_of_the_settings(name):
    model = small(name, features=4, redraw_every=1)
    model.at_update(0)
    for attention in model.attentions:
        w = attention.features.w
        norms = w.norm(dim=1, keepdim=True)
        torch.testing.assert_close((w / norms) @ (w / norms).T, torch.eye(4, dtype=F64), atol=1e-6, rtol=0)
    other = small(name, features=4, directions="iid")
    w = other.attentions[0].features.w
    assert (w @ w.T).fill_diagonal_(0).abs().max() > 1e-3


# When attention is replaced


@estimated
@both_ways
def test_attention_is_exact_until_it_is_swapped_and_then_has_features(name, causal):
    inputs, mask = padded([9, 4])
    model = small(name, causal=causal, swap_at=2, redraw_every=None)
    softmax, performer = (with_weights_of(model, kind, causal=causal) for kind in ("exact", name))
    performer.load_state_dict(drawn(model), strict=False)
    for number in range(5):
        model.at_update(number)
        assert exact(model) == [number < 2] * N
        expected = (softmax if number < 2 else performer)(inputs, mask)
        torch.testing.assert_close(model(inputs, mask)[mask], expected[mask], atol=1e-12, rtol=1e-12)
    assert not torch.isclose(softmax(inputs, mask), performer(inputs, mask)).all()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_checkpoint_remembers_whether_attention_is_exact(number):
    """Of a run that ends before, at or after the swap, and of one that is continued there."""
    inputs = symbols(2, 9)
    model, judged = (small("positive", swap_at=2) for _ in range(2))
    for update in range(number + 1):
        model.at_update(update)
    judged.load_state_dict(model.state_dict())
    assert exact(judged) == [number < 2] * N
    assert torch.equal(judged(inputs), model(inputs))
    for each in (model, judged):
        each.at_update(number + 1)
    assert exact(judged) == [number + 1 < 2] * N
    assert torch.equal(judged(inputs), model(inputs))
