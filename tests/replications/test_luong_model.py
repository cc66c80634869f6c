"""What the encoder-decoder of Luong et al. must do whatever its score, its alignment and its direction."""

import pytest
import torch

from replications.luong.model import Encoder, EncoderDecoder
from replications.luong.settings import ModelConfig
from shared.config import build
from shared.errors import ReplicationError
from tests.processor import skip_without_bfloat16_lstm
from tests.replications.small_luong import (
    ATTENTIONS,
    F64,
    K_X,
    K_Y,
    L,
    M,
    N,
    attention,
    directions,
    kinds,
    sentences,
    small,
)


@directions
@kinds
def test_decoding_step_by_step_is_teacher_forcing(score, alignment, feed, reverse):
    """Two beams with words of their own, which change places on the way."""
    model = small(score, alignment, feed, reverse=reverse)
    source, mask, one = sentences()
    targets = torch.stack((one, torch.randint(1, K_Y, one.shape)), dim=1)  # (B, 2, T)
    forced = [model(source, mask, targets[:, beam]) for beam in range(2)]
    state = model.reorder(model.start(source, mask), None, torch.zeros(3, 2, dtype=torch.long))
    order = [0, 1]
    for t in range(targets.size(2)):
        if t == 2:
            order, state = [1, 0], model.reorder(state, None, torch.tensor([[1, 0]]).expand(3, 2))
        log_p, a, state = model.step(targets[:, order, t], state)
        for place, beam in enumerate(order):
            logits, weights = forced[beam]
            torch.testing.assert_close(log_p[:, place], logits[:, t].log_softmax(-1), atol=1e-10, rtol=0)
            if score is None:
                assert a is None
                assert weights is None
            else:
                torch.testing.assert_close(a[:, place], weights[:, t], atol=1e-10, rtol=0)


@kinds
def test_sources_can_be_dropped_from_a_search(score, alignment, feed):
    model = small(score, alignment, feed)
    source, mask, target = sentences()
    begun = model.step(target[:, :1], model.start(source, mask))[2]
    state = model.reorder(begun, torch.tensor([0, 2]), torch.zeros(2, 1, dtype=torch.long))
    alone = model.step(target[[0, 2], :1], model.start(source[[0, 2]], mask[[0, 2]]))[2]
    assert state.t == alone.t == 1
    for field in ("annotations", "keys", "mask", "h", "c", "h_tilde"):
        torch.testing.assert_close(getattr(state, field), getattr(alone, field), atol=1e-12, rtol=0)


@directions
@kinds
def test_neither_padding_nor_company_changes_anything(score, alignment, feed, reverse):
    model = small(score, alignment, feed, reverse=reverse)
    source, mask, target = sentences()
    logits, weights = model(source, mask, target)
    for b, length in enumerate(mask.sum(1).tolist()):
        alone, a = model(source[b : b + 1, :length], mask[b : b + 1, :length], target[b : b + 1])
        torch.testing.assert_close(alone[0], logits[b], atol=1e-12, rtol=0)
        if score is not None:
            torch.testing.assert_close(a[0], weights[b, :, :length], atol=1e-12, rtol=0)
    garbage = source.masked_fill(~mask, 7)
    assert torch.equal(model(garbage, mask, target)[0], logits)


@directions
@kinds
def test_padding_gets_no_gradient(score, alignment, feed, reverse):
    model = small(score, alignment, feed, reverse=reverse)
    source, mask, target = sentences()
    model(source.masked_fill(~mask, 10).masked_fill(mask & (source == 10), 9), mask, target)[0].sum().backward()
    assert not model.encoder.embedding.weight.grad[10].any()  # stands in the padding only
    assert model.encoder.embedding.weight.grad[2].any()


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


@kinds
def test_no_word_sees_a_later_one(score, alignment, feed):
    model = small(score, alignment, feed)
    source, mask, target = sentences()
    logits, _ = model(source, mask, target)
    for t in range(target.size(1)):
        changed = target.clone()
        changed[:, t] = (changed[:, t] + 1) % K_Y
        again, _ = model(source, mask, changed)
        torch.testing.assert_close(again[:, :t], logits[:, :t], atol=1e-12, rtol=0)
        assert not torch.isclose(again[:, t], logits[:, t], atol=1e-6, rtol=0).all(-1).any()


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


def test_what_is_fed_matters():
    model = small("dot", "global", True)
    batch = sentences()
    before, _ = model(*batch)
    with torch.no_grad():
        model.lstm.weight_ih_l0[:, M:] = 0
    after, _ = model(*batch)
    torch.testing.assert_close(after[:, 0], before[:, 0], atol=1e-12, rtol=0)  # h̃_0 is zero
    assert not torch.isclose(after[:, 1:], before[:, 1:], atol=1e-6, rtol=0).all(-1).any()


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


@pytest.mark.parametrize("feed", [False, True])
def test_dropout_is_for_training_only(feed):
    model = small("dot", "global", feed, dropout=0.5)
    batch = sentences()
    plain, _ = model(*batch)
    assert torch.equal(model(*batch)[0], plain)
    model.train()
    one, other = model(*batch)[0], model(*batch)[0]
    assert not torch.isclose(one, other, atol=1e-6, rtol=0).all(-1).any()


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention": attention("location", "local-m")}, "'location' gives weights by position and goes with global"),
        ({"attention": {"score": "dot", "window": 3}}, "local attention needs a window, and global attention has none"),
        ({"attention": {"score": "dot", "alignment": "local-m"}}, "local attention needs a window"),
        ({"attention": {"score": "dot", "alignment": "local-p", "window": 0}}, "'attention.window'"),
        ({"attention": {"score": "location"}}, "'location' needs positions, and no other score has them"),
        ({"attention": {"score": "dot", "positions": 5}}, "no other score has them"),
        ({"attention": {"score": "dott"}}, "'attention.score'"),
        ({"attention": {"score": "dot", "alignment": "local"}}, "'attention.alignment'"),
        ({"input_feeding": True}, "input_feeding needs attention"),
        ({"dropout": 1.0}, "'dropout'"),
        ({"inputfeeding": True}, "did you mean 'input_feeding'"),
    ],
)
def test_a_configuration_that_fits_no_model_is_refused(change, message):
    sizes = {"embedding_size": M, "hidden_size": N, "layers": L, "reverse": True}
    with pytest.raises(ReplicationError, match=message) as error:
        build(ModelConfig, sizes | change, where="smoke.yaml")
    assert "\n" not in str(error.value)


def test_there_is_nothing_to_feed_without_attention():
    sizes = {"source_vocabulary": K_X, "target_vocabulary": K_Y, "embedding_size": M, "hidden_size": N, "layers": L}
    with pytest.raises(ValueError, match="no attentional vector to feed"):
        EncoderDecoder(**sizes, input_feeding=True)
