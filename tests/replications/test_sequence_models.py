"""What the models of Katharopoulos et al. and of Choromanski et al. must do, whatever their attention is."""

import pytest
import torch

from tests.replications.small_sequences import MODELS, drawn, padded, small, symbols

models = pytest.mark.parametrize("name", MODELS)
both_ways = pytest.mark.parametrize("causal", [True, False], ids=["causal", "both ways"])
SORTED = ("lsh, 1 round", "lsh, 4 rounds")
"""Those whose sums are of one another's order, which later symbols change, and so the last digit."""


@models
def test_a_resumed_model_draws_the_same_and_other_updates_draw_otherwise(name):
    (first, second), inputs = (small(name) for _ in range(2)), symbols(2, 9)
    assert first.origin != second.origin
    first.at_update(3)
    second.load_state_dict(first.state_dict())
    third = drawn(first)
    torch.manual_seed(5)
    first.at_update(4)
    torch.manual_seed(6)
    second.at_update(4)
    assert torch.equal(second(inputs), first(inputs))
    fourth, again = drawn(first), drawn(second)
    random = name in SORTED or name in ("positive", "hyperbolic", "trigonometric")
    assert bool(fourth) == random
    for key, numbers in fourth.items():
        assert torch.equal(numbers, again[key])
        assert not torch.isclose(numbers, third[key]).any()
    if random:  # no two layers have the same
        own = [numbers for _, numbers in sorted(fourth.items())]
        assert not torch.isclose(own[0], own[1]).any()


@pytest.mark.parametrize(
    ("kind", "name", "changes"),
    [
        ("softmax", "linear", {}), ("exact", "relu", {}), ("exact", "hyperbolic", {}), ("exact", "trigonometric", {}),
        *(("exact", "positive", {**each}) for each in ({}, {"features": 50}, {"directions": "iid"}, {"swap_at": 3})),
    ],
    ids=str,
)  # fmt: skip
def test_with_one_seed_all_kinds_of_attention_begin_with_the_same_weights(kind, name, changes):
    """FAVOR+ adds none."""
    models = []
    for attention, more in ((kind, {}), (name, changes)):
        torch.manual_seed(4)
        models.append(small(attention, std=None, **more))
    softmax, other = (dict(model.named_parameters()) for model in models)
    assert softmax.keys() == other.keys()
    assert all(torch.equal(weight, other[key]) for key, weight in softmax.items())
    assert models[0].origin == models[1].origin


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@models
@both_ways
def test_a_gpu_computes_the_same(name, causal):
    model = small(name, causal=causal)
    inputs, mask = padded([70, 33])
    found = []
    for device in ("cpu", "cuda"):
        model.to(device)
        found.append(model(inputs.to(device), mask.to(device)).cpu()[mask])
    torch.testing.assert_close(found[1], found[0], atol=1e-8, rtol=1e-8)
    model.at_update(1)
    assert model(inputs.cuda(), mask.cuda()).isfinite().all()
