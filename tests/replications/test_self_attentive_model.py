"""What the self-attentive classifier and its rivals must do whatever their sizes are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from replications.self_attentive.model import (
    GatedRelation,
    MaxPooledCNN,
    MaxPooledLSTM,
    MeanPooledLSTM,
    PrunedLayer,
    SelfAttentiveEncoder,
    TextClassifier,
    max_pooled,
    penalty_over_words,
)
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.attention.structured import redundancy_penalty
from shared.data.tokenizers import PAD
from tests.processor import skip_without_bfloat16_lstm

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


@many
@given(lengths=some_lengths, seed=seeds)
def test_mean_pooling_averages_over_the_words(lengths, seed):
    torch.manual_seed(seed)
    encoder, (s, mask) = large(MeanPooledLSTM(embedding_size=D_WORD, hidden_size=U)), words(lengths)
    m, a = encoder(s, mask)
    h = encoder.lstm(s, mask)
    assert a is None
    for text, length in enumerate(lengths):
        expected = [sum(h[text, t, f] for t in range(length)) / length for f in range(2 * U)]
        torch.testing.assert_close(m[text, 0], torch.stack(expected), **EXACT)


@pytest.mark.parametrize("window", [1, 3, 5])
@many
@given(lengths=some_lengths, seed=seeds)
def test_a_feature_of_the_convolution_sees_a_window_of_words_and_zeros_beyond(window, lengths, seed):
    torch.manual_seed(seed)
    encoder = large(MaxPooledCNN(embedding_size=D_WORD, features=FEATURES, window=window))
    s, mask = words(lengths)
    m, a = encoder(s, mask)
    weight, bias = encoder.convolution.weight, encoder.convolution.bias  # (D, d, window), (D,)
    for text, length in enumerate(lengths):
        features = torch.empty(length, FEATURES, dtype=F64)
        for t in range(length):
            seen = range(max(0, t - window // 2), min(length, t + window // 2 + 1))
            features[t] = sum(weight[:, :, i - t + window // 2] @ s[text, i] for i in seen) + bias
        assert_pooled(m, a, text, features, rectified=True)


def dense_of(of_rows, of_columns):
    """The weights of a dense layer (units, rows, D) with zeros wherever a unit of the pruned one does not look."""
    p, q = of_rows.size(2), of_columns.size(2)
    dense = torch.zeros(ROWS * p + D * q, ROWS, D, dtype=F64)
    for i in range(ROWS):
        for k in range(p):
            dense[i * p + k, i, :] = of_rows[i, :, k]
    for j in range(D):
        for k in range(q):
            dense[ROWS * p + j * q + k, :, j] = of_columns[j, :, k]
    return dense


@sizes_of_pruned
def test_the_pruned_layer_is_a_dense_one_with_most_weights_zero(p, q):
    layer = large(PrunedLayer(rows=ROWS, annotation_size=D, p=p, q=q))
    weights = layer.of_rows, layer.of_columns
    dense = dense_of(*(weight.detach() for weight in weights)).requires_grad_()
    kept = dense != 0
    assert kept.sum() == ROWS * D * (p + q) == sum(weight.numel() for weight in weights)
    m = torch.randn(6, ROWS, D, dtype=F64, requires_grad=True)
    found, expected = layer(m), m.flatten(1) @ dense.flatten(1).t() + layer.bias
    assert found.shape == (6, layer.size) == (6, ROWS * p + D * q)
    torch.testing.assert_close(found, expected, **EXACT)
    cotangent = torch.randn_like(found)
    of_m, *of_weights = torch.autograd.grad(found, (m, *weights), cotangent)
    of_m_too, of_dense = torch.autograd.grad(expected, (m, dense), cotangent)
    torch.testing.assert_close(of_m, of_m_too, **EXACT)
    torch.testing.assert_close(dense_of(*of_weights), of_dense * kept, **EXACT)


@sizes_of_pruned
def test_pruned_units_begin_as_those_of_a_linear_layer_of_as_many_inputs(p, q):
    layer = PrunedLayer(rows=16, annotation_size=36, p=20 * p, q=20 * q)
    for weight, inputs in ((layer.of_rows, 36), (layer.of_columns, 16)):
        if weight.numel():
            bound = inputs**-0.5
            assert 0.95 * bound < weight.abs().max().item() <= bound
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
    assert not layer.bias.any()


def test_the_gated_relation_multiplies_each_row_of_one_text_with_that_of_the_other():
    relation = large(GatedRelation(rows=ROWS, annotation_size=D, relation_size=2))
    premise, hypothesis = torch.randn(2, 5, ROWS, D, dtype=F64)
    f = relation(premise, hypothesis)
    assert f.shape == (5, ROWS, 2)
    for text in range(5):
        for row in range(ROWS):
            f_h = hypothesis[text, row] @ relation.w_fh[row]
            f_p = premise[text, row] @ relation.w_fp[row]
            torch.testing.assert_close(f[text, row], f_h * f_p, **EXACT)
    assert sum(parameter.numel() for parameter in relation.parameters()) == 2 * ROWS * D * 2
