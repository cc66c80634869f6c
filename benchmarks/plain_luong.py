"""The models of Luong et al. as one would write them first: the comparison partner of benchmarks and tests.

LSTM cells stepped by a Python loop, autograd throughout. It is not naive where that costs nothing: all words are
predicted in one product after the loop.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

States = list[tuple[Tensor, Tensor]]


class PlainLuong(nn.Module):
    """Global attention with the score dot or general, with or without input feeding, over a source read backwards.

    Sizes and inputs are those of ``replications.luong.model.EncoderDecoder``; the cells have no biases.

    Args:
        general: whether the score is h_tᵀ W_a h̄_s instead of h_tᵀ h̄_s.
        input_feeding: whether h̃_{t-1} is part of the decoder's input.
    """

    def __init__(
        self, *, source_vocabulary: int, target_vocabulary: int, embedding_size: int, hidden_size: int, layers: int,
        general: bool, input_feeding: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        m, n = embedding_size, hidden_size
        self.source, self.target = nn.Embedding(source_vocabulary, m), nn.Embedding(target_vocabulary, m)
        self.encoder = nn.ModuleList(nn.LSTMCell(n if i else m, n, bias=False) for i in range(layers))
        first = m + n if input_feeding else m
        self.decoder = nn.ModuleList(nn.LSTMCell(n if i else first, n, bias=False) for i in range(layers))
        self.key = nn.Linear(n, n, bias=False) if general else nn.Identity()
        self.attentional = nn.Linear(2 * n, n, bias=False)
        self.output = nn.Linear(n, target_vocabulary, bias=False)
        self.input_feeding = input_feeding

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S), (B, S), (B, T), the sources ending with an end symbol, to logits (B, T, V) and weights (B, T, S)."""
        h_bar, words, states = self.encode(source, mask)
        keys, e = self.key(h_bar), self.target(target)
        h_tilde, vectors, weights = torch.zeros_like(states[-1][0]), [], []
        for t in range(target.size(1)):
            x = torch.cat((e[:, t], h_tilde), dim=1) if self.input_feeding else e[:, t]
            states = self.advance(self.decoder, x, states)
            h = states[-1][0]  # (B, N)
            scores = torch.bmm(keys, h.unsqueeze(2)).squeeze(2)  # (B, S)
            a = torch.softmax(scores.masked_fill(~words, -torch.inf), dim=1)
            c = torch.bmm(a.unsqueeze(1), h_bar).squeeze(1)
            h_tilde = torch.tanh(self.attentional(torch.cat((c, h), dim=1)))
            vectors.append(h_tilde)
            weights.append(a)
        return self.output(torch.stack(vectors, dim=1)), torch.stack(weights, dim=1)

    def encode(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, States]:
        """Annotations (B, S, N), which of them are words, (B, S), and the states after the words.

        The words are read from last to first, without the end symbol; a sentence waits until its last word is read.
        """
        words = torch.arange(source.size(1), device=source.device) < mask.sum(1, keepdim=True) - 1
        e = self.source(source)
        zeros = e.new_zeros(len(source), self.output.in_features)
        states, h_bar = [(zeros, zeros)] * len(self.encoder), {}
        for s in reversed(range(source.size(1))):
            after = self.advance(self.encoder, e[:, s], states)
            is_word = words[:, s : s + 1]
            states = [
                (torch.where(is_word, h, before[0]), torch.where(is_word, c, before[1]))
                for (h, c), before in zip(after, states, strict=True)
            ]
            h_bar[s] = states[-1][0]
        return torch.stack([h_bar[s] for s in range(source.size(1))], dim=1), words, states

    def advance(self, cells: nn.ModuleList, x: Tensor, states: States) -> States:
        """One step of all layers."""
        after = []
        for cell, state in zip(cells, states, strict=True):
            after.append(cell(x, state))
            x = after[-1][0]
        return after
