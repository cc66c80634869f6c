"""The encoder-decoder of Luong et al. against the paper, equation by equation; its LSTM is torch's, by parity."""

import math

import pytest
import torch
from torch import nn

from replications.luong.model import Encoder
from replications.luong.replication import build_model
from replications.luong.settings import ModelConfig
from tests.checklist import F64, assert_translator, sequences, spread

K_X, K_Y, M, N, L, D, S_MAX = 11, 9, 4, 6, 2, 2, 4
CONTENT = ("dot", "general", "concat")
ALIGNMENTS = ("global", "local-m", "local-p")
ATTENTIONS = [("location", "global"), *((score, where) for where in ALIGNMENTS for score in CONTENT)]
KINDS = [(None, None, False), *((*kind, feed) for feed in (False, True) for kind in ATTENTIONS)]
kinds = pytest.mark.parametrize(("score", "alignment", "feed"), KINDS)
directions = pytest.mark.parametrize("reverse", [True, False])


def attention(score, alignment, window=D, positions=S_MAX):
    """The configuration's section of that name."""
    extra = {} if alignment == "global" else {"window": window}
    extra |= {"positions": positions} if score == "location" else {}
    return {"score": score, "alignment": alignment, **extra}


def config(score=None, alignment=None, feed=False, **others):
    sizes = {"embedding_size": M, "hidden_size": N, "layers": L, "reverse": True, "input_feeding": feed}
    chosen = None if score is None else attention(score, alignment)
    return ModelConfig.model_validate(sizes | {"attention": chosen} | others)


def small(*kind, **others):
    """With weights large enough to matter."""
    return spread(build_model(config(*kind, **others), K_X, K_Y), 0.5)


def sentences(lengths=(6, 4, 2), steps=5):
    """Sources of these lengths, the end symbol 2 included, and targets."""
    return *sequences(K_X, lengths), torch.randint(1, K_Y, (len(lengths), steps))


def read(model, source, *, reverse):
    """Annotations of the words in their order, and the states after the last one read, for one sentence (S,)."""
    words = list(range(len(source) - 1))
    order = [*(reversed(words) if reverse else words), *([len(words)] if model.encoder.end_symbol else [])]
    tops, state = nn.LSTM.forward(model.encoder.lstm, model.encoder.embedding.weight[source[order]].unsqueeze(1))
    return [tops[order.index(s), 0] for s in words], state


@directions
@pytest.mark.parametrize("as_program", [True, False])
def test_local_p_general_with_input_feeding_written_out(as_program, reverse):
    """Sections 3.2 and 3.3, equations 5, 6, 9 and 10, word by word; positions count from 1 in the sentence's order.

    As in lmthang/nmt.matlab @32f8564, no end symbol is read (``prepareData.m``, 47 and 59) and the centre is
    S·σ(…) + 1 (``attnLayerForward.m``, 101-106); or as in our runs of before, with an end symbol and the centre S·σ(…).
    """
    chosen = attention("general", "local-p") | {"first_word": 0 if as_program else 1}
    model = small("general", "local-p", True, attention=chosen, end_symbol=not as_program, reverse=reverse)
    with torch.no_grad():
        model.attention.alignment.v_p.mul_(4)  # the window shall move
    source, mask, target = sentences(lengths=(9,), steps=7)
    logits, weights = model(source, mask, target)
    score, where = model.attention.score, model.attention.alignment
    h_bar, state = read(model, source[0], reverse=reverse)
    h_tilde, words, centres = torch.zeros(N, dtype=F64), len(h_bar), set()
    for t in range(target.size(1)):
        fed = torch.cat((model.embedding.weight[target[0, t]], h_tilde))
        top, state = nn.LSTM.forward(model.lstm, fed.view(1, 1, -1), state)
        h = top[0, 0]
        p = words * torch.sigmoid(where.v_p @ torch.tanh(h @ where.w_p)) + as_program
        centre = max(math.floor(p.item()), 1)
        window = [s for s in range(1, words + 1) if centre - D <= s <= centre + D]
        align = torch.softmax(torch.stack([h @ score.w_a @ h_bar[s - 1] for s in window]), dim=0)
        c, a = torch.zeros(N, dtype=F64), torch.zeros(words + 1, dtype=F64)
        for s, share in zip(window, align, strict=True):
            a[s - 1] = share * torch.exp(-((s - p) ** 2) / (2 * (D / 2) ** 2))
            c = c + a[s - 1] * h_bar[s - 1]
        h_tilde = torch.tanh(model.attention.w_c.weight @ torch.cat((c, h)))
        torch.testing.assert_close(a, weights[0, t], atol=1e-10, rtol=0)
        torch.testing.assert_close(model.w_s.weight @ h_tilde, logits[0, t], atol=1e-10, rtol=0)
        centres.add(centre)
    assert len(centres) > 1


@kinds
def test_all_weights_start_uniform_and_there_are_no_biases(score, alignment, feed):
    sizes = {"embedding_size": 30, "hidden_size": 40, "init_range": 0.1}
    model = build_model(config(score, alignment, feed, **sizes), 300, 300)
    for name, parameter in model.named_parameters():
        assert "bias" not in name
        assert parameter.abs().max() <= 0.1, name
        n, deviation = parameter.numel(), 0.1 / 3**0.5
        assert abs(parameter.mean().item()) < 5 * deviation / n**0.5, name  # five standard errors
        assert abs(parameter.std().item() - deviation) < 5 * deviation * (0.2 / n) ** 0.5, name


@pytest.mark.parametrize(("score", "alignment"), ATTENTIONS)
def test_words_at_once_are_words_one_by_one(score, alignment):
    """Nothing is fed, so that all words go through the LSTM and attend together; a smoke run has few of the pairs."""
    assert_translator(build_model(config(score, alignment), K_X, K_X), K_X)


@directions
@kinds
def test_a_source_without_words_gives_finite_values_and_gradients(score, alignment, feed, reverse):
    model = small(score, alignment, feed, reverse=reverse, end_symbol=False)
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
