"""The caption generator of Xu et al. as one would write it first: the comparison partner of benchmarks and tests.

An LSTM cell stepped by a Python loop, in which everything is computed where the paper has it, and autograd throughout.
"""

from __future__ import annotations

import itertools
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.data.tokenizers import PAD


class Told(NamedTuple):
    """What the plain model says of captions, padding included."""

    nats: Tensor  # (B, T)
    alpha: Tensor | None  # (B, T, L)
    beta: Tensor | None  # (B, T)
    places: Tensor | None  # (B, T) s_t, drawn in training where attention is hard


class PlainCaptioner(nn.Module):
    """Soft or hard attention, or in its place the mean of the annotation vectors, or nothing.

    Args:
        attention: which of these.
        vocabulary: K.
        m: width of a word vector.
        n: width of the LSTM.
        a: width of the attention's layer.
        d: D, the width of an annotation vector.
        attention_layers: that an annotation vector goes through.
        initial_layers: of the perceptrons for h_0 and c_0.
        gate: whether there is a β.
        dropout: on the shared layers of these perceptrons, on h_t and before L_o.
        tanh: whether there is one around the sum of the deep output.
        pathwise: whether hard attention gets the gradient of an expectation through α.
    """

    def __init__(
        self, *, attention: Literal["soft", "hard", "mean"], vocabulary: int, m: int, n: int, a: int,
        d: int, attention_layers: int, initial_layers: int, gate: bool, dropout: float = 0.0, tanh: bool = True,
        pathwise: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        attends = attention in ("soft", "hard")
        self.attention, self.n, self.tanh, self.pathwise = attention, n, tanh, pathwise
        self.embedding = nn.Embedding(vocabulary, m)
        self.initial = nn.ModuleList(nn.Linear(d, d) for _ in range(initial_layers - 1))
        self.initial_h, self.initial_c = nn.Linear(d, n), nn.Linear(d, n)
        widths = itertools.pairwise([d, *[a] * attention_layers])
        self.w_c = nn.ModuleList(nn.Linear(*pair) for pair in widths) if attends else nn.ModuleList()
        self.w_d = nn.Linear(n, a, bias=False) if attends else None
        self.u = nn.Linear(a, 1) if attends else None
        self.f_beta = nn.Linear(n, 1) if gate else None
        self.cell = nn.LSTMCell(m + d, n)
        self.l_h = nn.Linear(n, m)
        self.l_z = nn.Linear(d, m)
        self.l_o = nn.Linear(m, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, captions: Tensor, drawn: Tensor | None = None) -> Told:
        """Teacher forcing.

        Args:
            features: (B, L, D).
            captions: (B, T), right-padded.
            drawn: (B,) bool, for which captions places are drawn; None in evaluation.
        """
        h, c = self.begin(features)
        word = h.new_zeros(len(captions), self.embedding.embedding_dim)
        steps: list[tuple[Tensor | None, ...]] = []
        for t in range(captions.size(1)):
            alpha, places, z = self.look(features, h, drawn)
            beta = None
            if self.f_beta is not None:
                beta = torch.sigmoid(self.f_beta(h))  # (B, 1)
                z = beta * z
            h, c = self.cell(torch.cat((word, z), dim=1), (h, c))
            summed = word + self.l_h(self.dropout(h)) + self.l_z(z)
            logits = self.l_o(self.dropout(torch.tanh(summed) if self.tanh else summed))
            nats = functional.cross_entropy(logits, captions[:, t], reduction="none", ignore_index=PAD)
            steps.append((nats, alpha, None if beta is None else beta.squeeze(1), places))
            word = self.embedding(captions[:, t])
        nats, alpha, beta, places = (
            None if parts[0] is None else torch.stack(parts, dim=1) for parts in zip(*steps, strict=True)
        )
        assert nats is not None
        return Told(nats, alpha, beta, places)

    def begin(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """h_0 and c_0, (B, n) each."""
        mean = features.mean(1)
        for layer in self.initial:
            mean = self.dropout(torch.relu(layer(mean)))
        return torch.tanh(self.initial_h(mean)), torch.tanh(self.initial_c(mean))

    def look(self, features: Tensor, h: Tensor, drawn: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """α_t (B, L), s_t (B,) and ẑ_t before the gate (B, D)."""
        if self.attention == "mean":
            return None, None, features.mean(1)
        assert self.w_d is not None
        assert self.u is not None
        first, *others = self.w_c
        context = first(features)
        for layer in others:
            context = torch.tanh(layer(context))
        e = self.u(torch.tanh(context + self.w_d(h).unsqueeze(1))).squeeze(2)  # (B, L)
        alpha = torch.softmax(e, dim=1)
        expected = ((alpha if self.pathwise else alpha.detach()).unsqueeze(2) * features).sum(1)
        if self.attention == "soft":
            return alpha, None, expected
        rows = torch.arange(len(features))
        if drawn is None:
            return alpha, None, features[rows, alpha.argmax(1)]
        places = torch.multinomial(alpha.detach(), 1).squeeze(1)
        return alpha, places, torch.where(drawn.unsqueeze(1), features[rows, places], expected)
