"""RNNsearch and RNNencdec against the authors' program, lisa-groundhog/GroundHog @4d2433b, from sources to logits.

It is written out here from ``experiments/nmt/encdec.py``, whose lines the comments name, in its order of operations and
with its names; time is the first axis. The output matrix is not factorised, as ours is not.
"""

import pytest
import torch

from replications.bahdanau.model import RNNencdec, RNNsearch
from tests.checklist import F64, spread

N, BOS = 6, 1
SIZES = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": N, "maxout_size": 3}


def signals(unit, direction, embedded):
    """742-753, 1042-1046: to the input, the update gate and the reset gate, of which the gates have no bias."""
    x, g, r = (embedded @ w for w in unit.w[direction].split(N, dim=1))
    return x + unit.b[direction, 0, :N], g, r


def transition(unit, direction, below, state_before):
    """397-409, and the same in ``RecurrentLayer.step_fprop`` of ``groundhog/layers/rec_layers.py``."""
    (x, g, r), (G_hh, R_hh) = below, unit.u_gates[direction].chunk(2, dim=1)
    reseter = torch.sigmoid(state_before @ R_hh + r)
    h = torch.tanh((reseter * state_before) @ unit.u_candidate[direction] + x)
    updater = torch.sigmoid(state_before @ G_hh + g)
    return updater * h + (1 - updater) * state_before


def encode(model, x, x_mask):
    """1314-1344: both units' states at every word, or the last forward one."""
    unit, components = model.encoder.unit, []
    for direction, order in enumerate((range(len(x)), reversed(range(len(x))))[: model.encoder.directions]):
        h, states = torch.zeros(x.size(1), N, dtype=F64), {}
        for t in order:
            after = transition(unit, direction, signals(unit, direction, model.encoder.embedding.weight[x[t]]), h)
            h = states[t] = x_mask[t][:, None] * after + (1 - x_mask[t][:, None]) * h
        components.append(torch.stack([states[t] for t in range(len(x))]))
    return torch.cat(components, dim=2) if len(components) == 2 else components[0][-1:]


def step(model, y, state_before, c, c_mask):
    """299-422, and without a search 1049-1053: the state that has read y as well, the context and its weights."""
    probs = c_mask[:1]
    if isinstance(model, RNNsearch):
        p = (state_before @ model.attention.w_a)[None] + c @ model.attention.u_a  # 365-372
        energy = torch.exp(torch.tanh(p) @ model.attention.v_a) * c_mask  # 375-378
        probs = energy / energy.sum(0)  # 381-384
    ctx = (c * probs[:, :, None]).sum(0)  # 389
    below = zip(signals(model.unit, 0, model.embedding.weight[y]), model.c.weight.split(N), strict=True)
    return transition(model.unit, 0, [signal + ctx @ w.t() for signal, w in below], state_before), ctx, probs


def readout(model, ctx, read_from, prev_word):
    """1135-1150, 1171: of contexts, states, and what ``prev_word_readout`` makes of the words before."""
    out = model.output
    summed = ctx @ out.c_o.weight.t() + out.u_o(read_from) + prev_word
    return out.w_o(summed.unflatten(-1, (-1, 2)).amax(-1))  # Maxout(2)


def evaluation(model, c, c_mask, read, words):
    """Teacher forcing, 1064-1173: the logits and the weights; ``read`` and ``words`` (T, B) are both its labels.

    Args:
        read: what the states read.
        words: what the read-out gets one step later.
    """
    h, states, contexts, alignment = torch.tanh(model.w_s(c[0, :, -N:])), [], [], []  # 1064-1065
    for y in read:
        states.append(h)  # 1123-1127: the initial one, and all but the last
        h, ctx, probs = step(model, y, h, c, c_mask)
        contexts.append(ctx)
        alignment.append(probs)
    prev_word = model.embedding.weight[words] @ model.output.v_o.weight.t()
    shifted = torch.cat((torch.zeros_like(prev_word[:1]), prev_word[:-1]))  # 1168-1170, Shift()
    return readout(model, torch.stack(contexts), torch.stack(states), shifted), torch.stack(alignment)


@pytest.fixture(params=[RNNsearch, RNNencdec])
def case(request):
    """A model, its batch (sources, their mask, and targets that begin with the start symbol), and the labels."""
    model = spread(request.param(**SIZES, **({"alignment_size": 5} if request.param is RNNsearch else {})), 0.7).train()
    with torch.no_grad():
        for unit in (model.encoder.unit, model.unit):
            unit.b[..., N:] = 0
    mask = torch.arange(6) < torch.tensor([6, 4, 1]).unsqueeze(1)
    labels = torch.randint(2, 9, (3, 7))
    target = torch.cat((torch.full((3, 1), BOS), labels[:, :-1]), dim=1)
    return model, (torch.randint(1, 11, mask.shape) * mask, mask, target), labels


def assert_same(found, expected):
    """Ours, with the batch first, and the program's; where there is one annotation we give no weights of it."""
    logits, weights = found
    torch.testing.assert_close(logits.transpose(0, 1), expected[0], atol=1e-10, rtol=0)
    if weights is not None:
        torch.testing.assert_close(weights.permute(1, 2, 0), expected[1], atol=1e-10, rtol=0)


def test_teacher_forcing_is_that_of_the_program(case):
    model, (source, mask, target), labels = case
    c, c_mask = encode(model, source.t(), mask.t().to(F64)), mask.t().to(F64)
    assert_same(model(source, mask, target), evaluation(model, c, c_mask, labels.t(), labels.t()))


def test_by_the_letter_of_the_appendix_a_state_reads_the_word_before(case):
    model, (source, mask, target), labels = case
    model.wiring = "appendix"
    with torch.no_grad():
        model.embedding.weight[BOS] = 0  # the program has no such symbol
    c, c_mask = encode(model, source.t(), mask.t().to(F64)), mask.t().to(F64)
    assert_same(model(source, mask, target), evaluation(model, c, c_mask, target.t(), labels.t()))
    differing = (
        model(source, mask, target)[0] - evaluation(model, c, c_mask, *[labels.t()] * 2)[0].transpose(0, 1)
    ).abs()
    assert differing[:, 0].max() < 1e-10
    assert (differing[:, 1:].amax(-1) > 1e-3).all()


def test_a_step_of_the_search_is_that_of_the_program(case):
    """``next_probs`` and ``next_states``, 1138 and 1153-1157, as ``sample.py`` calls them."""
    model, (source, mask, target), labels = case
    c, c_mask = encode(model, source.t(), mask.t().to(F64)), mask.t().to(F64)
    states, state = torch.tanh(model.w_s(c[0, :, -N:])), model.start(source, mask)
    for t in range(labels.size(1)):
        log_p, weights, state = model.step(target[:, t : t + 1], state)
        _, ctx, probs = step(model, target[:, t], states, c, c_mask)
        prev_word = (t > 0) * model.embedding.weight[target[:, t]] @ model.output.v_o.weight.t()  # y > 0
        logits = readout(model, ctx, states, prev_word)
        assert_same((log_p, weights), (logits.log_softmax(-1)[None], probs[None]))
        states, *_ = step(model, labels[:, t], states, c, c_mask)
