"""Attention in hard cases of arithmetic: huge scores, half precision, one word, and very many."""

import pytest
import torch

from shared.attention.feature_maps import EluPlusOne, ReLU
from shared.attention.linear import chunkwise_linear_attention, linear_attention
from shared.attention.scaled_dot_product import attend
from tests.attention.registry import ATTENTIONS
from tests.properties.test_attention_properties import case, every_entry, masked_entry, over

LONG = 65_536
WITHIN_LONG = 2e-3  # local-p's centre among so many words is a number of five digits, of which float32 keeps seven
STEPS = {name for name in ATTENTIONS if "local-p" in name or name.startswith("LSH") or "hash" in name.lower()}
"""Attentions whose weights jump where rounding moves the centre of a window or the side of a plane."""
ESTIMATED = [entry for name, entry in ATTENTIONS.items() if "trigonometric" in name]
"""Estimates whose terms may be negative: of huge scores they are no weights (Choromanski et al. 2021, section 2.3)."""
CHOOSING = {name for name, entry in ATTENTIONS.items() if not entry.differentiable}
smooth = over({name: entry for name, entry in ATTENTIONS.items() if name not in STEPS | CHOOSING})
WITHOUT_ALL_PAIRS = ("additive", "global dot", "global general", "global concat", "local-m dot", "local-p general")


def scaled(entry, factor, dtype, lengths=(7, 3), seed=3):
    """As :func:`case`, with inputs ``factor`` times as large: scores grow with its square where they are products."""
    module, queries, annotations, mask = case(entry, list(lengths), seed, dtype=torch.float64)
    return module.to(dtype), (queries * factor).to(dtype), (annotations * factor).to(dtype), mask


@every_entry
@pytest.mark.parametrize("factor", [1e2, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_huge_inputs_give_finite_weights_and_gradients(entry, factor, dtype):
    module, queries, annotations, mask = scaled(entry, factor, dtype)
    weights = entry.weights(module, queries.requires_grad_(), annotations.requires_grad_(), mask)
    assert weights.isfinite().all()
    if entry not in ESTIMATED:
        assert (weights.detach().float() >= 0).all()
        assert (weights.detach().float().sum(-1) <= 1.02).all()
    if not entry.differentiable:
        return
    inputs = (queries, annotations, *module.parameters())
    gradients = torch.autograd.grad(weights, inputs, torch.randn_like(weights), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)


@smooth
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)], ids=str)
def test_less_precision_stays_within_bounds_of_more(entry, dtype, within):
    exact = entry.weights(*scaled(entry, 1.0, torch.float64))
    rounded = entry.weights(*scaled(entry, 1.0, dtype))
    torch.testing.assert_close(rounded.to(exact.dtype), exact, atol=within, rtol=0)


@masked_entry
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_where_all_positions_are_masked_there_are_no_weights_and_no_gradients(entry, dtype):
    module, queries, annotations, mask = scaled(entry, 1.0, dtype)
    mask[1] = False
    weights = entry.weights(module, queries.requires_grad_(), annotations.requires_grad_(), mask)
    assert (weights[1] == 0).all()
    assert weights.isfinite().all()
    if not entry.differentiable:
        return
    inputs = (queries, annotations, *module.parameters())
    gradients = torch.autograd.grad(weights, inputs, torch.randn_like(weights), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all((gradient[1] == 0).all() for gradient in gradients[:2])


@pytest.mark.parametrize(("shift", "scale"), [(-60.0, 1.0), (-200.0, 0.0)])
def test_the_limit_of_the_elu_features_is_the_one_that_is_documented(shift, scale):
    """Keys down to -87 have the weights of float64; what float32 cannot hold has none, and nothing overflows."""
    torch.manual_seed(1)
    q, v, features = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 5, 4), EluPlusOne()
    k = (torch.randn(1, 2, 5, 8) + shift).requires_grad_()
    found = linear_attention(features(q), features(k), v)
    exact = linear_attention(features(q.double()), features(k.double()), v.double())
    torch.testing.assert_close(found.double(), scale * exact, atol=1e-4, rtol=1e-4)
    (gradient,) = torch.autograd.grad(found.sum(), k)
    assert gradient.isfinite().all()


@every_entry
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_source_of_one_word_has_all_the_weight(entry, dtype):
    module, queries, annotations, mask = scaled(entry, 1.0, dtype, lengths=(1, 1))
    weights = entry.weights(module, queries, annotations, mask).float()
    assert weights.shape[-1] == 1
    if entry.sums_to_one:
        torch.testing.assert_close(weights, torch.ones_like(weights), atol=1e-2, rtol=0)
    assert ((weights >= 0) & (weights <= 1.01)).all()


@over({name: ATTENTIONS[name] for name in WITHOUT_ALL_PAIRS})
def test_very_long_sources(entry):
    module, queries, annotations, mask = case(entry, [LONG, 2 * LONG // 3], seed=1, queries=2, dtype=torch.float32)
    weights = entry.weights(module, queries.requires_grad_(), annotations.requires_grad_(), mask)
    gradients = torch.autograd.grad(weights.square().sum(), (queries, annotations), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    exact = entry.weights(module.double(), queries.double(), annotations.double(), mask)
    torch.testing.assert_close(weights.double(), exact, atol=WITHIN_LONG, rtol=0)
    torch.testing.assert_close(weights.double().sum(-1), exact.sum(-1), atol=WITHIN_LONG, rtol=0)


@pytest.mark.parametrize("name", ["softmax", "linear", "relu", "causal linear"])
def test_very_long_sequences_of_heads(name):
    """Contexts of 65,536 keys in float32 are those of float64."""
    torch.manual_seed(1)
    q, k = torch.randn(1, 2, LONG if "causal" in name else 3, 8), torch.randn(1, 2, LONG, 8)
    v, features = torch.randn(1, 2, LONG, 4), ReLU() if name == "relu" else EluPlusOne()

    def contexts(dtype):
        a, b, c = q.to(dtype), k.to(dtype), v.to(dtype)
        if name == "softmax":
            return attend(a, b, c, mask=None, scale=8**-0.5)
        a, b = mapped(features, a), mapped(features, b)
        return chunkwise_linear_attention(a, b, c, chunk=128)[0] if "causal" in name else linear_attention(a, b, c)

    found, exact = contexts(torch.float32), contexts(torch.float64)
    assert found.isfinite().all()
    torch.testing.assert_close(found.double(), exact, atol=1e-4, rtol=1e-4)


def mapped(features, x):
    found = features(x)
    return found[0] if isinstance(found, tuple) else found
