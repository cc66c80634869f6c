"""What holds for every attention of ``tests/attention/registry.py``, whatever its scores are, also in hard cases.

Those are of arithmetic: huge scores, half precision, and nothing to see.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import linear_attention
from tests.attention.registry import ATTENTIONS
from tests.checklist import spread

N, M = 6, 6  # one width, so that a self-attention takes its queries from the annotations


def over(entries):
    return pytest.mark.parametrize("entry", list(entries.values()), ids=list(entries))


every_entry = over(ATTENTIONS)
masked_entry = over({name: entry for name, entry in ATTENTIONS.items() if entry.masked})
differentiable_entry = over({name: entry for name, entry in ATTENTIONS.items() if entry.differentiable})
many = settings(max_examples=10)
lengths = st.lists(st.integers(1, 7), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)


def case(entry, lengths, seed, *, queries=3, dtype=torch.float64):
    """A module with weights large enough to matter, its inputs, and the mask of right-padded sources."""
    torch.manual_seed(seed)
    module = spread(entry.build(N, M), 1.0).to(dtype)
    size = max(lengths)
    if not entry.masked:
        lengths = [size] * len(lengths)
    mask = torch.arange(size) < torch.tensor(lengths).unsqueeze(1)
    annotations = torch.randn(len(lengths), size, M, dtype=dtype)
    asked = annotations if entry.reads_itself else torch.randn(len(lengths), queries, N, dtype=dtype)
    return module, asked.clone(), annotations, mask


@every_entry
@many
@given(lengths=lengths, seed=seeds)
def test_rows_sum_to_one_or_less_over_the_words(entry, lengths, seed):
    module, queries, annotations, mask = case(entry, lengths, seed)
    weights = entry.weights(module, queries, annotations, mask)
    assert weights.shape == (*queries.shape[:2], annotations.size(1))
    assert (weights >= 0).all()
    assert (weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    sums = weights.sum(-1)
    assert (sums <= 1 + 1e-12).all()
    if entry.sums_to_one:
        sums = sums[mask] if entry.reads_itself else sums  # some have no weights at padding
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-12, rtol=0)


@masked_entry
@many
@given(lengths=lengths, seed=seeds, more=st.integers(1, 3))
def test_padding_changes_nothing(entry, lengths, seed, more):
    module, queries, annotations, mask = case(entry, lengths, seed)
    garbage = torch.randn_like(annotations) * 100
    longer = torch.cat((torch.where(mask.unsqueeze(2), annotations, garbage), garbage[:, :1].repeat(1, more, 1)), 1)
    longer_mask = torch.nn.functional.pad(mask, (0, more))
    asked = longer if entry.reads_itself else queries
    weights = entry.weights(module, queries, annotations, mask)
    padded = entry.weights(module, asked, longer, longer_mask)[:, : queries.size(1)]
    words = mask if entry.reads_itself else torch.ones(queries.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(padded[..., : mask.size(1)][words], weights[words], atol=1e-12, rtol=0)
    assert (padded[..., mask.size(1) :][words] == 0).all()


@every_entry
@many
@given(lengths=lengths, seed=seeds)
def test_a_batch_is_its_examples(entry, lengths, seed):
    module, queries, annotations, mask = case(entry, lengths, seed)
    weights = entry.weights(module, queries, annotations, mask)
    for row, length in enumerate(mask.sum(1).tolist()):
        one = slice(row, row + 1)
        asked = annotations[one, :length] if entry.reads_itself else queries[one]
        alone = entry.weights(module, asked, annotations[one, :length], mask[one, :length])
        torch.testing.assert_close(weights[one, : asked.size(1), :length], alone, atol=1e-12, rtol=0)


@over({name: entry for name, entry in ATTENTIONS.items() if entry.equivariant and not entry.reads_itself})
@many
@given(lengths=lengths, seed=seeds)
def test_reordering_the_source_reorders_the_weights(entry, lengths, seed):
    module, queries, annotations, mask = case(entry, lengths, seed)
    order = torch.randperm(annotations.size(1))
    weights = entry.weights(module, queries, annotations, mask)
    reordered = entry.weights(module, queries, annotations[:, order], mask[:, order])
    torch.testing.assert_close(reordered, weights[..., order], atol=1e-12, rtol=0)


@over({name: entry for name, entry in ATTENTIONS.items() if entry.causal})
@many
@given(lengths=lengths, seed=seeds)
def test_a_causal_attention_sees_nothing_of_the_future(entry, lengths, seed):
    module, queries, annotations, mask = case(entry, lengths, seed)
    weights = entry.weights(module, queries, annotations, mask)
    assert (weights.triu(1) == 0).all()
    for t in range(1, annotations.size(1)):
        changed = torch.cat((annotations[:, :t], torch.randn_like(annotations[:, t:])), dim=1)
        after = entry.weights(module, changed, changed, mask)[:, :t]
        tolerance = 0 if entry.to_the_bit else 1e-12
        torch.testing.assert_close(after, weights[:, :t], atol=tolerance, rtol=0)


@every_entry
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@settings(many, derandomize=True, max_examples=6)  # a window centred on ⌊p⌋ hangs on rounding once in a great while
@given(lengths=lengths, seed=seeds)
def test_the_fast_form_is_the_naive_one_in_values_and_gradients(entry, dtype, tolerance, lengths, seed):
    module, queries, annotations, mask = case(entry, lengths, seed, dtype=dtype)
    inputs = (queries.requires_grad_(), annotations.requires_grad_(), *module.parameters())
    fast = entry.weights(module, queries, annotations, mask)
    naive = entry.by_equation(module, queries, annotations, mask)
    torch.testing.assert_close(fast, naive, atol=tolerance, rtol=tolerance)
    if not entry.differentiable:
        return
    cotangent = torch.randn_like(fast)
    for ours, theirs in zip(
        torch.autograd.grad(fast, inputs, cotangent, materialize_grads=True),
        torch.autograd.grad(naive, inputs, cotangent, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


@differentiable_entry
def test_the_gradient_is_right(entry):
    module, queries, annotations, mask = case(entry, [3, 2], seed=1, queries=2)
    if entry.reads_itself:
        assert torch.autograd.gradcheck(lambda h: entry.weights(module, h, h, mask), annotations.requires_grad_())
    else:
        inputs = (queries.requires_grad_(), annotations.requires_grad_())
        assert torch.autograd.gradcheck(lambda s, h: entry.weights(module, s, h, mask), inputs)


LONG = 65_536
STEPS = {name for name in ATTENTIONS if "local-p" in name or name.startswith("LSH") or "hash" in name.lower()}
"""Attentions whose weights jump where rounding moves the centre of a window or the side of a plane."""
ESTIMATED = [entry for name, entry in ATTENTIONS.items() if "trigonometric" in name]
"""Estimates whose terms may be negative: of huge scores they are no weights (Choromanski et al. 2021, section 2.3)."""
CHOOSING = {name for name, entry in ATTENTIONS.items() if not entry.differentiable}
smooth = over({name: entry for name, entry in ATTENTIONS.items() if name not in STEPS | CHOOSING})


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
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
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
