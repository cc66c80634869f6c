"""The whole caption generator against torch's LSTM cell with plain autograd, weights copied; costs by loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from benchmarks.plain_show_attend_tell import PlainCaptioner
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS, PAD
from shared.vision.features import Grid

F64 = torch.float64
REWARD, ENTROPY, BASELINE = 0.7, 0.3, -4.0
HARD = {"attention": "hard", "hard": {"reinforce": REWARD, "entropy": ENTROPY}}
VARIANTS = {
    "soft": {"attention": "soft", "penalty": 0.6},
    "supervised, no gate": {"attention": "soft", "supervision": 0.8, "gate": False},
    "no tanh": {"attention": "soft", "tanh_output": False},
    "hard": HARD,
    "hard, score function": {"attention": "hard", "hard": HARD["hard"] | {"pathwise": False, "coin": "batch"}},
    "mean": {"attention": "mean"},
}
variants = pytest.mark.parametrize("variant", VARIANTS)
small = st.integers(1, 5)
sizes = {
    "vocabulary": st.integers(6, 9), "m": small, "n": small, "a": small, "d": small, "places": small,
    "attention_layers": st.integers(1, 3), "initial_layers": st.integers(1, 3),
}  # fmt: skip


def pair(variant, *, vocabulary, d, places, dtype=F64, **chosen):
    """The model and its plain twin, and pairs of parameters that are the same, ours first."""
    config = ModelConfig.model_validate(VARIANTS[variant] | chosen)
    ours = build_model(config, vocabulary, Grid(1, places, d)).to(dtype)
    plain = PlainCaptioner(
        attention=config.attention, vocabulary=vocabulary, d=d, gate=config.gate, tanh=config.tanh_output,
        pathwise=config.hard is None or config.hard.pathwise, **chosen,
    ).to(dtype)  # fmt: skip
    initial, decoder, output, cell = ours.initial, ours.decoder, ours.output, plain.cell
    modules = [
        (initial.f_h, plain.initial_h), (initial.f_c, plain.initial_c), (initial.shared, plain.initial),
        (decoder.f_beta, plain.f_beta), (output.l_h, plain.l_h), (output.l_z, plain.l_z), (output.l_o, plain.l_o),
    ]  # fmt: skip
    pairs = [
        (ours.embedding.weight, plain.embedding.weight), (decoder.from_h, cell.weight_hh),
        (decoder.from_y.bias, cell.bias_ih),
    ]  # fmt: skip
    if plain.u is not None:
        modules += [(decoder.glimpse.w_c, plain.w_c), (decoder.glimpse.u, plain.u)]
        pairs.append((decoder.w_d, plain.w_d.weight))
    for mine, theirs in modules:
        assert (mine is None) == (theirs is None)
        if mine is not None:
            pairs += zip(mine.parameters(), theirs.parameters(), strict=True)
    with torch.no_grad():
        for mine, theirs in pairs:
            theirs.copy_(nn.init.normal_(mine, std=0.7))
        for embedding in (ours.embedding, plain.embedding):
            embedding.weight[BOS] = 0
        nn.init.normal_(decoder.from_y.weight)
        nn.init.normal_(decoder.from_z)
        cell.weight_ih.copy_(torch.cat((decoder.from_y.weight, decoder.from_z), dim=1))
        cell.bias_hh.zero_()
    assert len(pairs) + 2 == len([*plain.parameters()])  # weight_ih has two parts in ours, and bias_hh is none of it
    return ours, plain, pairs


def batch_of(lengths, vocabulary, d, places, dtype=F64):
    """Pictures, padded captions, and for every other word where attention should be."""
    words = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    captions = torch.randint(EOS, vocabulary, words.shape).masked_fill(~words, PAD)
    named = words & (torch.arange(max(lengths)) % 2 == 1)
    regions = torch.rand(*words.shape, places, dtype=dtype).softmax(-1) * named.unsqueeze(2)
    return torch.randn(len(lengths), places, d, dtype=dtype), captions, regions


def added(told, lengths, config, regions, drawn):
    """What training adds, caption by caption and word by word: equation 14, Liu et al., and the rule of section 4.1."""
    costs = []
    for caption, length in enumerate(lengths):
        cost, alpha = 0.0, told.alpha[caption]
        for place in range(alpha.size(1)):
            cost = cost + config.penalty * (1 - sum(alpha[t, place] for t in range(length))) ** 2
        for t in range(length):
            cost = cost - config.supervision * regions[caption, t].dot(alpha[t].log())
        if config.attention == "hard":
            entropy = sum(-(alpha[t] * alpha[t].log()).sum() for t in range(length))
            cost = cost - ENTROPY * entropy
            if drawn[caption]:
                log_likelihood = -told.nats[caption, :length].sum().item()
                log_p_s = sum(alpha[t, told.places[caption, t]].log() for t in range(length))
                cost = cost - REWARD * (log_likelihood - BASELINE) * log_p_s
        costs.append(cost)
    return torch.stack(costs)


def coin(config, count, seed):
    """Which captions have drawn places; the generator then stands where the model's does."""
    torch.manual_seed(seed)
    if config.attention != "hard":
        return None
    return (torch.rand(count if config.hard.coin == "image" else 1, 1) < config.hard.sampling).expand(count, 1)[:, 0]


def assert_alike(variant, lengths, seed, tolerance, dtype=F64, **size):
    torch.manual_seed(seed)
    ours, plain, pairs = pair(variant, dtype=dtype, **size)
    features, captions, regions = batch_of(lengths, size["vocabulary"], size["d"], size["places"], dtype)
    config = ModelConfig.model_validate(VARIANTS[variant] | {k: size[k] for k in ("m", "n", "a")})
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(
        tuple(ours.eval()(features, captions)[:3]), tuple(plain(features, captions)[:3]), **close
    )

    drawn = coin(config, len(lengths), seed)
    told = plain(features, captions, drawn)
    torch.manual_seed(seed)
    if ours.reinforce is not None:
        ours.reinforce.b.fill_(BASELINE)
    out = ours.train()(features, captions, regions)
    torch.testing.assert_close(tuple(out[:3]), tuple(told[:3]), **close)
    found, expected = out.nats.sum(), told.nats.sum()
    assert (out.auxiliary is None) == (told.alpha is None)
    if out.auxiliary is not None:
        costs = added(told, lengths, config, regions, drawn)
        torch.testing.assert_close(out.auxiliary, costs, **close)
        found, expected = found + out.auxiliary.sum(), expected + costs.sum()
    found.backward()
    expected.backward()
    assert_gradients(ours, plain, pairs, 100 * tolerance)


def assert_gradients(ours, plain, pairs, tolerance):
    of_z = ours.decoder.from_z
    of_x = torch.cat((ours.decoder.from_y.weight.grad, torch.zeros_like(of_z) if of_z.grad is None else of_z.grad), 1)
    torch.testing.assert_close(of_x, plain.cell.weight_ih.grad, atol=tolerance, rtol=tolerance)
    for mine, theirs in pairs:
        gradients = [torch.zeros_like(mine) if p.grad is None else p.grad for p in (mine, theirs)]
        torch.testing.assert_close(*gradients, atol=tolerance, rtol=tolerance)


@variants
@settings(deadline=None, max_examples=12)
@given(size=st.fixed_dictionaries(sizes), lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
       seed=st.integers(0, 2**31))  # fmt: skip
def test_costs_attention_gates_and_gradients_are_those_of_the_equations_whatever_the_sizes(
    variant, size, lengths, seed
):
    assert_alike(variant, lengths, seed, 1e-10, **size)


@variants
def test_in_single_precision_too(variant):
    size = {
        "vocabulary": 30, "m": 8, "n": 16, "a": 8, "d": 12, "places": 9, "attention_layers": 2, "initial_layers": 2
    }  # fmt: skip
    assert_alike(variant, [9, 6, 4, 1], 5, 2e-5, torch.float32, **size)
