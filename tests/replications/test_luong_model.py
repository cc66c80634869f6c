"""What the encoder-decoder of Luong et al. must do whatever its score, its alignment and its direction."""

import pytest
import torch

from replications.luong.model import Encoder
from tests.processor import skip_without_bfloat16_lstm
from tests.replications.small_luong import (
    ATTENTIONS,
    F64,
    K_X,
    L,
    M,
    N,
    directions,
    kinds,
    sentences,
    small,
)


@kinds
def test_weights_are_over_the_words_of_the_sentence(score, alignment, feed):
    model = small(score, alignment, feed)
    source, mask, target = sentences()
    _, weights = model(source, mask, target)
    if score is None:
        assert weights is None
        return
    assert weights.shape == (*target.shape, source.size(1))
    for b, length in enumerate(mask.sum(1).tolist()):
        assert not weights[b, :, length - 1 :].any()  # neither the end symbol nor padding
        total = weights[b].sum(-1)
        if alignment == "local-p":
            assert (total < 1).all()
            assert (total > 0).all()
        else:
            torch.testing.assert_close(total, torch.ones_like(total), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("score", "alignment"), ATTENTIONS)
def test_feeding_nothing_is_not_feeding(score, alignment):
    """The step loop whose weights for h̃ are zero, against the fused path: values and all gradients they share."""
    feeding, fused = small(score, alignment, True), small(score, alignment, False)
    weights = feeding.state_dict()
    weights["lstm.weight_ih_l0"][:, M:] = 0
    fused.load_state_dict(weights | {"lstm.weight_ih_l0": weights["lstm.weight_ih_l0"][:, :M]})
    batch = sentences()
    found, expected = feeding(*batch), fused(*batch)
    torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
    cotangents = [torch.randn_like(output) for output in expected]
    torch.autograd.backward(found, cotangents)
    torch.autograd.backward(expected, cotangents)
    gradients = {name: parameter.grad for name, parameter in feeding.named_parameters()}
    gradients["lstm.weight_ih_l0"] = gradients["lstm.weight_ih_l0"][:, :M]
    for name, parameter in fused.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-10, rtol=1e-10, msg=name)


def test_annotations_come_in_the_order_of_the_sentence():
    """Reading a sentence backwards is reading the turned sentence forwards, with the annotations turned back."""
    sizes = {"vocabulary": K_X, "embedding_size": M, "hidden_size": N, "layers": L, "dropout": 0.0}
    backwards, forwards = (Encoder(**sizes, reverse=reverse).to(F64) for reverse in (True, False))
    forwards.load_state_dict(backwards.state_dict())
    source, mask, _ = sentences()
    turned = source.clone()
    lengths = mask.sum(1).tolist()
    for b, length in enumerate(lengths):
        turned[b, : length - 1] = source[b, : length - 1].flip(0)
    ours, words, final = backwards(source, mask)
    theirs, same, state = forwards(turned, mask)
    assert torch.equal(words, same)
    assert words.sum(1).tolist() == [length - 1 for length in lengths]
    torch.testing.assert_close(final, state, atol=1e-14, rtol=0)
    for b, length in enumerate(lengths):
        torch.testing.assert_close(ours[b, : length - 1], theirs[b, : length - 1].flip(0), atol=1e-14, rtol=0)


@directions
@kinds
def test_a_source_without_words_gives_finite_values_and_gradients(score, alignment, feed, reverse):
    model = small(score, alignment, feed, reverse=reverse)
    for lengths in ((1,), (4, 1)):
        source, mask, target = sentences(lengths=lengths)
        logits, weights = model(source, mask, target)
        assert weights is None or not weights[-1].any()
        logits.square().sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("layers", [1, 3])
def test_dropout_acts_on_the_input_of_every_layer_and_on_what_is_fed(layers):
    """With all of the decoder's inputs dropped only its states go on, from the encoder's final ones."""
    outputs = []
    feeding, fused = (small("dot", "global", feed, layers=layers, dropout=0.5) for feed in (True, False))
    weights = feeding.state_dict()
    fused.load_state_dict(weights | {"lstm.weight_ih_l0": weights["lstm.weight_ih_l0"][:, :M]})
    source, mask, target = sentences()
    for model in (feeding, fused):
        model.dropout.train()
        model.lstm.train()
        model.dropout.p = model.lstm.dropout = 1.0
        outputs += [model(source, mask, words) for words in (target, target.flip(1))]
    for output in outputs[1:]:
        torch.testing.assert_close(output, outputs[0], atol=1e-12, rtol=0)
    assert outputs[0][0].abs().min() > 0


def test_an_encoder_whose_input_is_dropped_stays_at_rest():
    encoder = Encoder(vocabulary=K_X, embedding_size=M, hidden_size=N, layers=L, dropout=1.0, reverse=True)
    source, mask, _ = sentences()
    annotations, _, final = encoder(source, mask)
    assert not any(tensor.any() for tensor in (annotations, *final))


@kinds
def test_mixed_precision_changes_little_and_gradients_stay_in_float32(score, alignment, feed):
    skip_without_bfloat16_lstm()
    model = small(score, alignment, feed).float()
    batch = sentences()
    plain, _ = model(*batch)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = model(*batch)
    mixed.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name
    if alignment != "local-p":  # a position that is rounded otherwise may move a window by a word
        assert (mixed - plain).norm() < 0.05 * plain.norm()
