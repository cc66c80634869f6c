"""What the self-attentive classifier and its rivals must do whatever their sizes are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from replications.self_attentive import model as attentive
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.attention.structured import redundancy_penalty
from tests.checklist import F64, LENGTHS, sequences, spread

VOCABULARY, CLASSES = 17, 3
SIZES = {
    "encoder": "attention", "d": 4, "u": 3, "attention": {"d_a": 5, "r": 3, "penalty": 0.5},
    "cnn": {"features": 5, "window": 3}, "b": 7, "dropout": 0.0,
}  # fmt: skip


def small(**changes):
    """With weights large enough to matter."""
    return spread(build_model(ModelConfig.model_validate(SIZES | changes), VOCABULARY, CLASSES), 0.5)


EXACT = {"atol": 1e-12, "rtol": 0}


@pytest.mark.parametrize(("over", "penalty"), [("rows", redundancy_penalty), ("words", attentive.penalty_over_words)])
def test_the_auxiliary_term_is_the_penalty_of_all_texts_times_its_coefficient(over, penalty):
    model = small(relation=4, attention=SIZES["attention"] | {"penalty_over": over})
    out = model(*zip(*(sequences(VOCABULARY, lengths) for lengths in (LENGTHS, LENGTHS[::-1])), strict=True))
    expected = 0.5 * sum(penalty(a) for a in out.attention)
    torch.testing.assert_close(out.auxiliary, expected, **EXACT)
    assert (out.auxiliary > 0).all()


def test_dropout_is_of_the_hidden_units_alone():
    model, batch = small(dropout=0.99), [(part,) for part in sequences(VOCABULARY)]
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0
    out, expected = model.train()(*batch), model.eval()(*batch)
    torch.testing.assert_close(out.logits, model.mlp[-1].bias.expand(3, -1), **EXACT)
    torch.testing.assert_close(out.attention, expected.attention, **EXACT)


D_WORD, U = 4, 3
many = settings(max_examples=20)
some_lengths = st.lists(st.integers(1, 8), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)


def words(lengths):
    """Word vectors (B, n, d) with garbage at padding, and their mask."""
    _, mask = sequences(VOCABULARY, lengths)
    return torch.randn(*mask.shape, D_WORD, dtype=F64), mask


@many
@given(lengths=some_lengths, seed=seeds)
def test_max_pooling_takes_every_features_largest_value_among_the_words(lengths, seed):
    torch.manual_seed(seed)
    encoder, (s, mask) = spread(attentive.MaxPooledLSTM(embedding_size=D_WORD, hidden_size=U), 0.5), words(lengths)
    m, a = encoder(s, mask)
    h = encoder.lstm(s, mask)
    assert m.shape == (len(lengths), 1, 2 * U)
    for text, length in enumerate(lengths):
        rows = h[text, :length].tolist()
        places = [max(range(length), key=lambda t, f=f: rows[t][f]) for f in range(2 * U)]
        assert m[text, 0].tolist() == [rows[t][f] for f, t in enumerate(places)]
        shares = [places.count(t) / len(places) for t in range(a.size(2))]  # none at padding
        torch.testing.assert_close(a[text, 0], torch.tensor(shares, dtype=F64), **EXACT)


def test_a_feature_that_fires_nowhere_has_a_place_all_the_same():
    encoder = attentive.MaxPooledCNN(embedding_size=1, features=2, window=1)
    nn.init.constant_(encoder.convolution.weight, 1.0)
    nn.init.constant_(encoder.convolution.bias, -5.0)
    m, a = encoder(torch.tensor([[[1.0], [3.0], [2.0]]]), torch.ones(1, 3, dtype=torch.bool))
    assert m.tolist() == [[[0.0, 0.0]]]
    assert a.tolist() == [[[0.0, 1.0, 0.0]]]


@pytest.mark.parametrize("kind", ["attention", "max", "cnn"])
def test_a_text_without_words_is_zero_and_leaves_gradients_finite(kind):
    build, sizes = {
        "attention": (attentive.SelfAttentiveEncoder, {"hidden_size": U, "attention_size": 2, "rows": 3}),
        "max": (attentive.MaxPooledLSTM, {"hidden_size": U}),
        "cnn": (attentive.MaxPooledCNN, {"features": 5, "window": 3}),
    }[kind]  # fmt: skip
    encoder, (s, mask) = spread(build(embedding_size=D_WORD, **sizes), 0.5), words([3, 2, 5])
    mask[1] = False
    m, a = encoder(s.requires_grad_(), mask)
    assert not m[1].any()
    assert a is None or not a[1].any()
    gradients = torch.autograd.grad(m.square().sum() + m.sum(), (s, *encoder.parameters()), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][1].any()
    alone, _ = encoder(s[[0, 2]], mask[[0, 2]])
    torch.testing.assert_close(m[[0, 2]], alone, **EXACT)
    assert not encoder(s[1:2], mask[1:2])[0].any()


def test_of_equal_features_the_first_counts():
    _, a = attentive.max_pooled(torch.zeros(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
    assert a.tolist() == [[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]


@pytest.mark.parametrize(("p", "q"), [(2, 3), (1, 0), (0, 2)])
def test_pruned_units_begin_as_those_of_a_linear_layer_of_as_many_inputs(p, q):
    layer = attentive.PrunedLayer(rows=16, annotation_size=36, p=20 * p, q=20 * q)
    for weight, inputs in ((layer.of_rows, 36), (layer.of_columns, 16)):
        if weight.numel():
            bound = inputs**-0.5
            assert 0.95 * bound < weight.abs().max().item() <= bound
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
    assert not layer.bias.any()
