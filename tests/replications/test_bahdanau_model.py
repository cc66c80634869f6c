"""RNNsearch and RNNencdec against the paper, equation by equation."""

import torch

from replications.bahdanau.model import RNNencdec, RNNsearch
from shared.attention.softmax import masked_softmax

F64 = torch.float64
SMALL = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": 6, "maxout_size": 3}


def small(kind, **wiring):
    sizes = SMALL | wiring
    model = RNNsearch(alignment_size=5, **sizes) if kind == "rnnsearch" else RNNencdec(**sizes)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.to(F64).eval()


def sentences(lengths=(6, 4, 1), steps=5):
    source = torch.randint(1, 11, (len(lengths), max(lengths)))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return source.masked_fill(~mask, 0), mask, torch.randint(1, 9, (len(lengths), steps))


def test_the_equations_of_the_appendix_written_out():
    """A.1.2 and A.2.2 for one sentence, word by word; ``test_groundhog_parity`` has the program's wiring."""
    model = small("rnnsearch", wiring="appendix")
    source, mask, target = sentences(lengths=(5,))
    logits, alphas = model(source, mask, target)
    out, unit, n = model.output, model.unit, 6

    def gru(u, d, x, h):
        e_c, e_z, e_r = (x @ u.w[d] + u.b[d, 0]).split(n, -1)
        z, r = torch.sigmoid(e_z + h @ u.u_gates[d, :, :n]), torch.sigmoid(e_r + h @ u.u_gates[d, :, n:])
        return (1 - z) * h + z * torch.tanh(e_c + (r * h) @ u.u_candidate[d])

    words = model.encoder.embedding(source[0])
    forward, backward = [torch.zeros(n, dtype=F64)], [torch.zeros(n, dtype=F64)]
    for j in range(5):
        forward.append(gru(model.encoder.unit, 0, words[j], forward[-1]))
        backward.append(gru(model.encoder.unit, 1, words[4 - j], backward[-1]))
    h = torch.cat((torch.stack(forward[1:]), torch.stack(backward[:0:-1])), dim=1)
    s = torch.tanh(model.w_s(backward[-1]))  # the backward state at the first word
    for i in range(target.size(1)):
        e_y = model.embedding(target[0, i])
        w_a, u_a, v_a = model.attention.w_a, model.attention.u_a, model.attention.v_a
        alpha = torch.stack([torch.tanh(s @ w_a + h_j @ u_a) @ v_a for h_j in h]).softmax(0)
        c = alpha @ h
        t_tilde = s @ out.u_o.weight.t() + out.u_o.bias + e_y @ out.v_o.weight.t() + c @ out.c_o.weight.t()
        t = torch.stack([t_tilde[2 * j : 2 * j + 2].max() for j in range(3)])
        torch.testing.assert_close(out.w_o(t), logits[0, i], atol=1e-10, rtol=0)
        torch.testing.assert_close(alpha, alphas[0, i], atol=1e-10, rtol=0)
        x = e_y @ unit.w[0] + unit.b[0, 0] + model.c(c)
        e_c, e_z, e_r = x.split(n)
        z, r = torch.sigmoid(e_z + s @ unit.u_gates[0, :, :n]), torch.sigmoid(e_r + s @ unit.u_gates[0, :, n:])
        s = (1 - z) * s + z * torch.tanh(e_c + (r * s) @ unit.u_candidate[0])


def test_the_fixed_vector_is_the_state_after_the_last_word():
    model = small("rnnencdec")
    source, mask, _ = sentences()
    h = model.encoder(source, mask)
    state = model.start(source, mask)
    for b, length in enumerate(mask.sum(1).tolist()):
        assert torch.equal(state.annotations[b, 0], h[b, length - 1])


def test_weights_start_as_in_appendix_b():
    sizes = {"source_vocabulary": 300, "target_vocabulary": 300, "embedding_size": 60, "hidden_size": 50}
    model = RNNsearch(**sizes, maxout_size=40, alignment_size=70)
    for name, parameter in model.named_parameters():
        last = name.rsplit(".")[-1]
        if last in ("b", "bias", "v_a"):
            assert not parameter.any(), name
        elif not last.startswith("u_gates") and not last.startswith("u_candidate"):
            expected = 0.001 if name in ("attention.w_a", "attention.u_a") else 0.01
            n = parameter.numel()  # five standard errors of mean and standard deviation
            assert abs(parameter.mean().item()) < 5 * expected / n**0.5, name
            assert abs(parameter.std().item() - expected) < 5 * expected / (2 * n) ** 0.5, name
    for unit in (model.encoder.unit, model.unit):
        for matrix in [*unit.u_gates[0].chunk(2, dim=1), unit.u_candidate[0]]:
            torch.testing.assert_close(matrix @ matrix.t(), torch.eye(50), atol=1e-5, rtol=0)


def test_masked_positions_get_nothing_even_if_all_are_masked():
    model = small("rnnsearch")
    source, mask, target = sentences()
    mask[0] = False
    logits, alphas = model(source, mask, target)
    assert not alphas[0].any()
    logits.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    assert masked_softmax(torch.zeros(2), torch.tensor([False, False])).tolist() == [0, 0]
