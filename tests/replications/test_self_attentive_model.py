"""What the self-attentive classifier and its rivals must do whatever their sizes are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from replications.self_attentive.model import (
    MaxPooledCNN,
    MaxPooledLSTM,
    MeanPooledLSTM,
    PrunedLayer,
    SelfAttentiveEncoder,
    max_pooled,
    penalty_over_words,
)
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.attention.structured import redundancy_penalty

F64 = torch.float64
VOCABULARY, CLASSES = 17, 3
SIZES = {
    "encoder": "attention", "d": 4, "u": 3, "attention": {"d_a": 5, "r": 3, "penalty": 0.5},
    "cnn": {"features": 5, "window": 3}, "b": 7, "dropout": 0.0,
}  # fmt: skip
VARIANTS = {
    "attention": {},
    "rows-1": {"attention": {"d_a": 5, "r": 1, "penalty": 0.5}},
    "penalty-0": {"attention": {"d_a": 5, "r": 3, "penalty": 0.0}},
    "pruned": {"b": None, "pruned": {"p": 2, "q": 1}},
    "max": {"encoder": "max"},
    "mean": {"encoder": "mean"},
    "cnn": {"encoder": "cnn"},
    "two texts": {"relation": 4},
    "two texts, max": {"encoder": "max", "relation": 4},
}


def small(variant="attention", **changes):
    """With weights large enough to matter."""
    model = build_model(ModelConfig.model_validate(SIZES | VARIANTS[variant] | changes), VOCABULARY, CLASSES)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.to(F64).eval()


def one_text(lengths):
    """Symbols (B, n), right-padded with zeros, and their mask."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return torch.randint(4, VOCABULARY, mask.shape).masked_fill(~mask, 0), mask


def texts_of(variant, lengths=(6, 4, 1)):
    """What a model reads: symbols and masks of one text, or of two, the second in reverse order of length."""
    sides = [lengths, lengths[::-1]] if "two" in variant else [lengths]
    symbols, masks = zip(*map(one_text, sides), strict=True)
    return symbols, masks


EXACT = {"atol": 1e-12, "rtol": 0}
variants = pytest.mark.parametrize("variant", VARIANTS)


@pytest.mark.parametrize(("over", "penalty"), [("rows", redundancy_penalty), ("words", penalty_over_words)])
@pytest.mark.parametrize("variant", ["attention", "two texts"])
def test_the_auxiliary_term_is_the_penalty_of_all_texts_times_its_coefficient(variant, over, penalty):
    model = small(variant, attention=SIZES["attention"] | {"penalty_over": over})
    texts, masks = texts_of(variant)
    out = model(texts, masks)
    expected = 0.5 * sum(penalty(a) for a in out.attention)
    torch.testing.assert_close(out.auxiliary, expected, **EXACT)
    assert (out.auxiliary > 0).all()


def test_dropout_is_of_the_hidden_units_alone():
    model, batch = small(dropout=0.99), texts_of("attention")
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0
    out, expected = model.train()(*batch), model.eval()(*batch)
    torch.testing.assert_close(out.logits, model.mlp[-1].bias.expand(3, -1), **EXACT)
    torch.testing.assert_close(out.attention, expected.attention, **EXACT)


D_WORD, U, FEATURES = 4, 3, 5
ROWS, D = 3, 4
many = settings(deadline=None, max_examples=20)
some_lengths = st.lists(st.integers(1, 8), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)
sizes_of_pruned = pytest.mark.parametrize(("p", "q"), [(2, 3), (1, 0), (0, 2)])


def large(module):
    """With weights large enough to matter."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.to(F64)


def words(lengths):
    """Word vectors (B, n, d) with garbage at padding, and their mask."""
    _, mask = one_text(lengths)
    return torch.randn(*mask.shape, D_WORD, dtype=F64), mask


def pooled_by_hand(features):
    """The largest value of each feature of one text (n, D), and the share of features that are largest at each word."""
    rows = features.tolist()
    places = [max(range(len(rows)), key=lambda t: rows[t][f]) for f in range(len(rows[0]))]
    largest = [rows[t][f] for f, t in enumerate(places)]
    return largest, [places.count(t) / len(places) for t in range(len(rows))]


def assert_pooled(m, a, text, features, *, rectified=False):
    largest, shares = pooled_by_hand(features)
    largest = [max(value, 0.0) for value in largest] if rectified else largest
    torch.testing.assert_close(m[text, 0], torch.tensor(largest, dtype=F64), **EXACT)
    torch.testing.assert_close(a[text, 0, : len(shares)], torch.tensor(shares, dtype=F64), **EXACT)
    assert not a[text, 0, len(shares) :].any()


@many
@given(lengths=some_lengths, seed=seeds)
def test_max_pooling_takes_every_features_largest_value_among_the_words(lengths, seed):
    torch.manual_seed(seed)
    encoder, (s, mask) = large(MaxPooledLSTM(embedding_size=D_WORD, hidden_size=U)), words(lengths)
    m, a = encoder(s, mask)
    h = encoder.lstm(s, mask)
    assert m.shape == (len(lengths), 1, 2 * U)
    for text, length in enumerate(lengths):
        assert_pooled(m, a, text, h[text, :length])


def test_a_feature_that_fires_nowhere_has_a_place_all_the_same():
    encoder = MaxPooledCNN(embedding_size=1, features=2, window=1)
    nn.init.constant_(encoder.convolution.weight, 1.0)
    nn.init.constant_(encoder.convolution.bias, -5.0)
    m, a = encoder(torch.tensor([[[1.0], [3.0], [2.0]]]), torch.ones(1, 3, dtype=torch.bool))
    assert m.tolist() == [[[0.0, 0.0]]]
    assert a.tolist() == [[[0.0, 1.0, 0.0]]]


@pytest.mark.parametrize("kind", ["attention", "max", "mean", "cnn"])
def test_a_text_without_words_is_zero_and_leaves_gradients_finite(kind):
    encoders = {
        "attention": lambda: SelfAttentiveEncoder(embedding_size=D_WORD, hidden_size=U, attention_size=2, rows=ROWS),
        "max": lambda: MaxPooledLSTM(embedding_size=D_WORD, hidden_size=U),
        "mean": lambda: MeanPooledLSTM(embedding_size=D_WORD, hidden_size=U),
        "cnn": lambda: MaxPooledCNN(embedding_size=D_WORD, features=FEATURES, window=3),
    }
    encoder, (s, mask) = large(encoders[kind]()), words([3, 2, 5])
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
    _, a = max_pooled(torch.zeros(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
    assert a.tolist() == [[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]


@sizes_of_pruned
def test_pruned_units_begin_as_those_of_a_linear_layer_of_as_many_inputs(p, q):
    layer = PrunedLayer(rows=16, annotation_size=36, p=20 * p, q=20 * q)
    for weight, inputs in ((layer.of_rows, 36), (layer.of_columns, 16)):
        if weight.numel():
            bound = inputs**-0.5
            assert 0.95 * bound < weight.abs().max().item() <= bound
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
    assert not layer.bias.any()
