"""RNNsearch and RNNencdec against the recurrence of the authors' program, lisa-groundhog/GroundHog @4d2433b.

Its decoder is written out here from ``experiments/nmt/encdec.py``, whose lines the comments name, in its order of
operations and with its names: once over a whole target (``Decoder.EVALUATION``), and once as its beam search calls it,
with ``next_probs`` and ``next_states`` (``sample.py``). The output matrix is not factorised, as ours is not.
"""

import pytest
import torch

from replications.bahdanau.model import RNNencdec, RNNsearch

F64 = torch.float64
N, EOS = 6, 2
SIZES = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": N, "maxout_size": 3}
close = {"atol": 1e-10, "rtol": 0}


class GroundHog:
    """Its decoder with the weights of ours. Time is the first axis, as there."""

    def __init__(self, model):
        self.search = isinstance(model, RNNsearch)
        self.W_hh, (self.G_hh, self.R_hh) = model.unit.u_candidate[0], model.unit.u_gates[0].chunk(2, dim=1)
        if self.search:
            self.A_cp, self.B_hp, self.D_pe = model.attention.u_a, model.attention.w_a, model.attention.v_a
        self.embeddings = model.embedding.weight
        self.embedders, self.bias = model.unit.w[0].split(N, dim=1), model.unit.b[0, 0, :N]
        self.from_c = [weight.t() for weight in model.c.weight.split(N)]  # inputers, updaters, reseters
        self.initializer, self.output = model.w_s, model.output

    def below(self, y):
        """1042-1046: input, update and reset signals; the gates have no bias (``_create_embedding_layers``)."""
        x, g, r = (self.embeddings[y] @ w for w in self.embedders)
        return x + self.bias, g, r

    def step_fprop(self, below, state_before, c, c_mask):
        """299-422, and 1049-1053 where there is no search; h, the context and its weights."""
        x, g, r = below
        if self.search:
            p = (state_before @ self.B_hp)[None] + c @ self.A_cp  # 365-372
            energy = torch.exp(torch.tanh(p) @ self.D_pe) * c_mask  # 375-378
            probs = energy / energy.sum(0)  # 381-384
            ctx = (c * probs[:, :, None]).sum(0)  # 389
        else:
            probs, ctx = None, c[0]  # ReplicateLayer: all are the last forward state
        x, g, r = (signal + ctx @ w for signal, w in zip((x, g, r), self.from_c, strict=True))  # 391-393
        reseter = torch.sigmoid(state_before @ self.R_hh + r)  # 397
        h = torch.tanh((reseter * state_before) @ self.W_hh + x)  # 402-403
        updater = torch.sigmoid(state_before @ self.G_hh + g)  # 407
        return updater * h + (1 - updater) * state_before, ctx, probs  # 409

    def readout(self, ctx, read_from, prev_word):
        """1135-1150, 1171: contexts, states, and what ``prev_word_readout`` makes of the words before."""
        out = self.output
        summed = ctx @ out.c_o.weight.t() + out.u_o(read_from) + prev_word
        return out.w_o(summed.unflatten(-1, (-1, 2)).amax(-1))  # Maxout(2)

    def prev_word_readout(self, y):
        return self.embeddings[y] @ self.output.v_o.weight.t()

    def init_states(self, c):
        """1064-1065."""
        return torch.tanh(self.initializer(c[0, :, -N:]))

    def evaluation(self, c, c_mask, y):
        """Teacher forcing over the labels (T, B): 1087-1098 by ``fprop``, 1123-1127, 1168-1170."""
        init = h = self.init_states(c)
        states, contexts, alignment = [], [], []
        for y_t in y:
            h, ctx, probs = self.step_fprop(self.below(y_t), h, c, c_mask)
            for kept, value in zip((states, contexts, alignment), (h, ctx, probs), strict=True):
                kept.append(value)
        hidden_layers = torch.cat((init[None], torch.stack(states)))[:-1]
        words = self.prev_word_readout(y)
        shifted = torch.cat((torch.zeros_like(words[:1]), words[:-1]))  # Shift()
        return self.readout(torch.stack(contexts), hidden_layers, shifted), alignment

    def next_probs(self, c, c_mask, y, states, first):
        """The logits after the words y: 1138, 1153-1157, where the first one (0) is multiplied by zero."""
        _, ctx, probs = self.step_fprop(self.below(y), states, c, c_mask)
        return self.readout(ctx, states, (not first) * self.prev_word_readout(y)), probs

    def next_states(self, c, c_mask, y, states):
        """The states that have read the words y as well."""
        return self.step_fprop(self.below(y), states, c, c_mask)[0]


@pytest.fixture(params=["search", "encdec"])
def pair(request):
    ours = (RNNsearch(alignment_size=5, **SIZES) if request.param == "search" else RNNencdec(**SIZES)).to(F64)
    with torch.no_grad():
        for parameter in ours.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
        for unit in (ours.encoder.unit, ours.unit):
            unit.b[..., N:] = 0
    return ours, GroundHog(ours)


def sentences():
    """Sources and their mask, and labels (B, T) with what our decoder gets: the same one step later."""
    mask = torch.arange(6) < torch.tensor([6, 4, 1]).unsqueeze(1)
    labels = torch.randint(EOS + 1, 9, (3, 7))
    return (
        torch.randint(1, 11, mask.shape) * mask,
        mask,
        labels,
        torch.cat((torch.ones(3, 1).long(), labels[:, :-1]), 1),
    )


def annotations(ours, source, mask):
    """(S, B, …) as its encoder gives them, which ``test_gated_unit_parity`` compares with torch's."""
    state = ours.start(source, mask)
    return state.annotations.transpose(0, 1), mask.t().to(F64)


def test_teacher_forcing_is_that_of_the_program(pair):
    ours, program = pair
    source, mask, labels, target = sentences()
    logits, alphas = ours(source, mask, target)
    expected, alignment = program.evaluation(*annotations(ours, source, mask), labels.t())
    torch.testing.assert_close(logits.transpose(0, 1), expected, **close)
    if program.search:
        torch.testing.assert_close(alphas.permute(1, 2, 0), torch.stack(alignment), **close)


def test_a_step_of_the_search_is_that_of_the_program(pair):
    ours, program = pair
    source, mask, labels, target = sentences()
    c, c_mask = annotations(ours, source, mask)
    states, state = program.init_states(c), ours.start(source, mask)
    for t in range(labels.size(1)):
        log_p, alpha, state = ours.step(target[:, t : t + 1], state)
        expected, probs = program.next_probs(c, c_mask, target[:, t], states, first=t == 0)
        torch.testing.assert_close(log_p[:, 0], expected.log_softmax(-1), **close)
        if program.search:
            torch.testing.assert_close(alpha[:, 0].t(), probs, **close)
        states = program.next_states(c, c_mask, labels[:, t], states)


def test_the_letter_of_the_appendix_differs_from_the_second_word_on(pair):
    ours, program = pair
    source, mask, labels, target = sentences()
    ours.wiring = "appendix"
    with torch.no_grad():
        ours.embedding.weight[1] = 0  # of the start symbol, which the program has not
    expected, _ = program.evaluation(*annotations(ours, source, mask), labels.t())
    difference = (ours(source, mask, target)[0].transpose(0, 1) - expected).abs()
    assert difference[0].max() < 1e-10
    assert (difference[1:].amax(-1) > 1e-3).all()
