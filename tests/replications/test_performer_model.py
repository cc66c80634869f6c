"""The Performer beside the Transformer whose weights it has: what it estimates, and when it takes over."""

import math

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


# Weights


@estimated
@pytest.mark.parametrize("changes", [{}, {"features": 50}, {"directions": "iid"}, {"swap_at": 3}], ids=str)
def test_with_one_seed_all_kinds_of_attention_begin_with_the_same_weights(name, changes):
    """FAVOR+ adds none."""
    models = []
    for kind in ("exact", name):
        torch.manual_seed(4)
        models.append(small(kind, std=None, **(changes if kind == name else {})))
    softmax, performer = (dict(model.named_parameters()) for model in models)
    assert softmax.keys() == performer.keys()
    assert all(torch.equal(weight, performer[key]) for key, weight in softmax.items())
    assert models[0].origin == models[1].origin


@torch.no_grad()
@both_ways
@pytest.mark.parametrize("name", ["positive", "hyperbolic"])
def test_with_many_features_it_is_the_transformer(name, causal):
    """The error falls with the square root of their number."""
    inputs, mask = padded([40, 23, 7])
    softmax = small("exact", causal=causal, std=0.4)
    expected = softmax(inputs, mask)[mask]
    errors = []
    for features in (16, 128, 1024):
        found = [with_weights_of(softmax, name, causal=causal, features=features)(inputs, mask)[mask] for _ in range(6)]
        errors.append(math.sqrt(sum((h - expected).square().mean().item() for h in found) / len(found)))
    few, more, many = errors
    assert many < 0.08
    assert 1.5 < few / more < 6  # √8 = 2.8
    assert 1.5 < more / many < 6


def test_for_queries_and_keys_that_are_small_trigonometric_features_do_as_well():
    inputs, mask = padded([20, 9])
    softmax = small("exact", std=0.1)
    performer = with_weights_of(softmax, "trigonometric", features=4096)
    torch.testing.assert_close(performer(inputs, mask)[mask], softmax(inputs, mask)[mask], atol=0.02, rtol=0)


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
