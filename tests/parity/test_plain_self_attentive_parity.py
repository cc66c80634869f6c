"""The whole classifier against one that reads a text at a time, step by step, from the equations; weights copied."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from tests.checklist import spread

VOCABULARY, CLASSES, D_WORD, U, R = 13, 4, 5, 3, 2
SIZES = {
    "encoder": "attention", "d": D_WORD, "u": U, "attention": {"d_a": 4, "r": R, "penalty": 0.7},
    "cnn": {"features": 6, "window": 3}, "b": 8, "dropout": 0.0,
}  # fmt: skip
VARIANTS = {
    "attention": {},
    "pruned": {"b": None, "pruned": {"p": 3, "q": 2}},
    "max": {"encoder": "max"},
    "cnn": {"encoder": "cnn"},
    "two texts": {"relation": 5},
}
TOLERANCES = [(torch.float64, 1e-10), (torch.float32, 1e-5)]
LENGTHS = (6, 1, 4)


class Plain(nn.Module):
    """Takes a copy of every weight of ours; ``forward`` is of a single text, or of two, without padding."""

    def __init__(self, ours):
        super().__init__()
        self.kind = type(ours.encoder).__name__
        weights = {name: nn.Parameter(p.detach().clone()) for name, p in ours.named_parameters()}
        self.weights = nn.ParameterDict({name.replace(".", "/"): p for name, p in weights.items()})
        self.p = weights["mlp.0.of_rows"].size(2) if "mlp.0.of_rows" in weights else None

    def of(self, name):
        return self.weights[name.replace(".", "/")]

    def forward(self, *texts):
        """Logits (C,) and the penalty."""
        found = [self.embed(text) for text in texts]
        m = found[0][0] if len(texts) == 1 else self.relate(*(m for m, _ in found))
        units = torch.stack(self.hidden(m)).relu()
        logits = functional.linear(units, self.of("mlp.3.weight"), self.of("mlp.3.bias"))
        return logits, sum(penalty for _, penalty in found)

    def embed(self, text):
        """M (r, D) of a text (n,), and its penalty."""
        vectors = [self.of("embedding.weight")[word] for word in text]
        if self.kind == "MaxPooledCNN":
            return self.convolved(vectors).amax(0, keepdim=True), 0.0
        h = self.annotate(vectors)
        if self.kind == "MaxPooledLSTM":
            return h.amax(0, keepdim=True), 0.0
        w_s1, w_s2 = (self.of(f"encoder.attention.w_s{number}.weight") for number in (1, 2))
        scores = [w_s2 @ (w_s1 @ word).tanh() for word in h]
        a = [functional.softmax(torch.stack([score[row] for score in scores]), dim=0) for row in range(R)]
        m = torch.stack([sum(weight * word for weight, word in zip(row, h, strict=True)) for row in a])
        return m, sum((a[i].dot(a[j]) - float(i == j)) ** 2 for i in range(R) for j in range(R))

    def annotate(self, vectors):
        """H (n, 2u), by a cell for each direction."""
        directions = []
        for suffix, words in (("", vectors), ("_reverse", vectors[::-1])):
            w, w_h = (self.of(f"encoder.lstm.lstm.weight_{kind}_l0{suffix}") for kind in ("ih", "hh"))
            cell = nn.LSTMCell(D_WORD, U)
            given = {
                "weight_ih": w[:, :D_WORD], "bias_ih": w[:, D_WORD], "weight_hh": w_h, "bias_hh": w.new_zeros(4 * U),
            }  # fmt: skip
            state, states = (w.new_zeros(U), w.new_zeros(U)), []
            for word in words:
                state = torch.func.functional_call(cell, given, (word, state))
                states.append(state[0])
            directions.append(states if not suffix else states[::-1])
        return torch.stack([torch.cat(both) for both in zip(*directions, strict=True)])

    def convolved(self, vectors):
        """Features (n, D) of windows that begin before and end behind the text with zeros."""
        weight, bias = self.of("encoder.convolution.weight"), self.of("encoder.convolution.bias")
        zeros = [torch.zeros_like(vectors[0])]
        padded = [*zeros, *vectors, *zeros]
        windows = [torch.stack(padded[t : t + 3], dim=1) for t in range(len(vectors))]  # (d, 3) each
        return torch.stack([functional.relu((weight * window).sum((1, 2)) + bias) for window in windows])

    def relate(self, premise, hypothesis):
        w_fh, w_fp = self.of("relation.w_fh"), self.of("relation.w_fp")
        return torch.stack([(hypothesis[i] @ w_fh[i]) * (premise[i] @ w_fp[i]) for i in range(R)])

    def hidden(self, m):
        """Hidden units before they are rectified, one by one."""
        if self.p is None:
            sums = zip(self.of("mlp.0.1.weight"), self.of("mlp.0.1.bias"), strict=True)
            return [weight.dot(torch.cat(list(m))) + bias for weight, bias in sums]
        rows, columns = self.of("mlp.0.of_rows"), self.of("mlp.0.of_columns")
        units = [m[i].dot(rows[i, :, k]) for i in range(R) for k in range(self.p)]
        units += [m[:, j].dot(columns[j, :, k]) for j in range(2 * U) for k in range(columns.size(2))]
        return [unit + bias for unit, bias in zip(units, self.of("mlp.0.bias"), strict=True)]


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_values_and_gradients_are_those_of_a_text_at_a_time(variant, dtype, tolerance):
    ours = spread(build_model(ModelConfig.model_validate(SIZES | VARIANTS[variant]), VOCABULARY, CLASSES), 0.5)
    ours.to(dtype).train()
    plain = Plain(ours)
    sides = [LENGTHS, (2, 5, 3)] if "two" in variant else [LENGTHS]
    texts = [[torch.randint(1, VOCABULARY, (length,)) for length in side] for side in sides]
    symbols = tuple(nn.utils.rnn.pad_sequence(side, batch_first=True) for side in texts)
    masks = tuple(side > 0 for side in symbols)
    out = ours(symbols, masks)
    logits, penalties = zip(*(plain(*text) for text in zip(*texts, strict=True)), strict=True)
    torch.testing.assert_close(out.logits, torch.stack(logits), atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(out.logits)
    found, expected = (out.logits * cotangent).sum(), (torch.stack(logits) * cotangent).sum()
    if out.auxiliary is not None:
        auxiliary = 0.7 * torch.stack(penalties)
        torch.testing.assert_close(out.auxiliary, auxiliary, atol=tolerance, rtol=tolerance)
        found, expected = found + out.auxiliary.sum(), expected + auxiliary.sum()
    assert (out.auxiliary is None) == (penalties == (0.0,) * 3)
    found.backward()
    expected.backward()
    for name, parameter in ours.named_parameters():
        mine, theirs = parameter.grad, plain.of(name).grad
        assert mine.any(), name
        torch.testing.assert_close(mine, theirs, atol=10 * tolerance, rtol=10 * tolerance, msg=name)
