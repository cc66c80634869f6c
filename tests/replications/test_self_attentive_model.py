"""What the self-attentive classifier and its rivals must do whatever their sizes are."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from replications.self_attentive.model import TextClassifier
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.attention.structured import redundancy_penalty
from shared.data.tokenizers import PAD
from tests.processor import skip_without_bfloat16_lstm
from tests.replications.small_self_attentive import CLASSES, SIZES, VARIANTS, small, texts_of

EXACT = {"atol": 1e-12, "rtol": 0}
variants = pytest.mark.parametrize("variant", VARIANTS)


@pytest.mark.parametrize("variant", ["attention", "two texts"])
def test_the_auxiliary_term_is_the_penalty_of_all_texts_times_its_coefficient(variant):
    model, (texts, masks) = small(variant), texts_of(variant)
    out = model(texts, masks)
    expected = 0.5 * sum(redundancy_penalty(a) for a in out.attention)
    torch.testing.assert_close(out.auxiliary, expected, **EXACT)
    assert (out.auxiliary > 0).all()


def test_the_embedding_is_the_weighted_sum_of_annotations():
    model, ((text,), (mask,)) = small(), texts_of("attention")
    s = model.embedding(text)
    m, a = model.encoder(s, mask)
    h = model.encoder.lstm(s, mask)
    assert m.shape == (3, 3, 6)
    for i, row, feature in torch.cartesian_prod(torch.arange(3), torch.arange(3), torch.arange(6)).tolist():
        expected = sum(a[i, row, t] * h[i, t, feature] for t in range(text.size(1)))
        torch.testing.assert_close(m[i, row, feature], expected, **EXACT)


def test_two_texts_share_the_encoder_and_each_has_its_own_annotation_matrix():
    model, (texts, masks) = small("two texts"), texts_of("two texts")
    kept = [[*m.embedding.parameters(), *m.encoder.parameters()] for m in (model, small())]
    assert [p.shape for p in kept[0]] == [p.shape for p in kept[1]]  # as many as of one text
    out, swapped = model(texts, masks), model(texts[::-1], masks[::-1])
    torch.testing.assert_close(swapped.attention, out.attention[::-1], **EXACT)
    torch.testing.assert_close(swapped.auxiliary, out.auxiliary, **EXACT)
    assert (swapped.logits - out.logits).abs().max() > 1e-3  # what relates them knows which is which
    premise, hypothesis = (
        model.encoder(model.embedding(text), mask)[0] for text, mask in zip(texts, masks, strict=True)
    )
    torch.testing.assert_close(model.mlp(model.relation(premise, hypothesis)), out.logits, **EXACT)


@variants
def test_the_loss_reaches_every_parameter(variant):
    model, (texts, masks) = small(variant), texts_of(variant)
    out = model(texts, masks)
    loss = functional.cross_entropy(out.logits, torch.tensor([0, 1, 2]))
    (loss if out.auxiliary is None else loss + out.auxiliary.mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    read = torch.cat([text[mask] for text, mask in zip(texts, masks, strict=True)]).unique()
    assert set(model.embedding.weight.grad.any(1).nonzero().flatten().tolist()) <= set(read.tolist()) - {PAD}


def test_the_penalty_trains_the_attention_and_what_is_below_it_only():
    model = small()
    model(*texts_of("attention")).auxiliary.sum().backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert {name.split(".")[0] for name in reached} == {"embedding", "encoder"}


@variants
def test_mixed_precision_changes_little_and_stays_finite(variant):
    if "cnn" not in variant:
        skip_without_bfloat16_lstm()
    model, (texts, masks) = small(variant).float(), texts_of(variant)
    plain = model(texts, masks)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(texts, masks)
    mixed.logits.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name
    assert (mixed.logits - plain.logits).norm() < 0.05 * plain.logits.norm()
    if plain.auxiliary is not None:
        torch.testing.assert_close(mixed.auxiliary.float(), plain.auxiliary, atol=0.05, rtol=0.05)


def test_dropout_is_of_the_hidden_units_alone():
    model, batch = small(dropout=0.99), texts_of("attention")
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0
    out, expected = model.train()(*batch), model.eval()(*batch)
    torch.testing.assert_close(out.logits, model.mlp[-1].bias.expand(3, -1), **EXACT)
    torch.testing.assert_close(out.attention, expected.attention, **EXACT)


def test_word_vectors_begin_with_the_standard_deviation_that_is_asked_for():
    for std in (0.1, 1.0):
        config = ModelConfig.model_validate(SIZES | {"d": 50, "word_std": std})
        vectors = build_model(config, 2000, CLASSES).embedding.weight
        assert vectors.std().item() == pytest.approx(std, rel=0.02)


def test_the_classifier_has_one_hidden_layer_of_rectified_units():
    model = small()
    assert isinstance(model, TextClassifier)
    m = torch.randn(2, 3, 6, dtype=torch.float64)
    (_, hidden), output = model.mlp[0], model.mlp[-1]
    units = torch.relu(m.reshape(2, 18) @ hidden.weight.t() + hidden.bias)
    torch.testing.assert_close(model.mlp(m), units @ output.weight.t() + output.bias, **EXACT)
