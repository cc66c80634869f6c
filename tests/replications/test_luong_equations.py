"""The encoder-decoder of Luong et al. against the paper, equation by equation, and its sizes."""

import math

import torch

from replications.luong.replication import build_model
from tests.replications.small_luong import F64, D, L, N, config, kinds, sentences, small


def unit(lstm, layer, x, h, c):
    """One LSTM unit on vectors: i, f, o = σ, g = tanh, as torch orders them."""
    gates = getattr(lstm, f"weight_ih_l{layer}") @ x + getattr(lstm, f"weight_hh_l{layer}") @ h
    i, f, g, o = gates.split(N)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def stack(lstm, x, state):
    """All layers, from x up; the states of both."""
    after = []
    for layer, (h, c) in enumerate(state):
        after.append(unit(lstm, layer, x, h, c))
        x = after[-1][0]
    return after


def read(model, source, *, reverse):
    """Annotations of the words in their order, and the states after the end symbol, for one sentence (S,)."""
    zero = torch.zeros(N, dtype=F64)
    state, annotations = [(zero, zero)] * L, {}
    words = range(len(source) - 1)
    for s in reversed(words) if reverse else words:
        state = stack(model.encoder.lstm, model.encoder.embedding.weight[source[s]], state)
        annotations[s] = state[-1][0]
    final = stack(model.encoder.lstm, model.encoder.embedding.weight[source[-1]], state)
    return [annotations[s] for s in words], final


def test_local_p_general_with_input_feeding_written_out():
    """Sections 3.2 and 3.3, equations 5, 6, 9 and 10, word by word; positions count from 1, the source is reversed."""
    model = small("general", "local-p", True)
    with torch.no_grad():
        model.attention.alignment.v_p.mul_(4)  # the window shall move
    source, mask, target = sentences(lengths=(9,), steps=7)
    logits, weights = model(source, mask, target)
    score, where = model.attention.score, model.attention.alignment
    h_bar, state = read(model, source[0], reverse=True)
    h_tilde, words, centres = torch.zeros(N, dtype=F64), len(h_bar), set()
    for t in range(target.size(1)):
        state = stack(model.lstm, torch.cat((model.embedding.weight[target[0, t]], h_tilde)), state)
        h = state[-1][0]
        p = words * torch.sigmoid(where.v_p @ torch.tanh(h @ where.w_p))
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
