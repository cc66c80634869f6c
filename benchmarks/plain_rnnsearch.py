"""RNNsearch as one would write it first: the comparison partner of the benchmarks.

GRU cells stepped by a Python loop, autograd throughout, PyTorch's own gate convention. It is not naive where that
costs nothing: the alignment keys are computed once per source.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PlainRNNsearch(nn.Module):
    """The same sizes and inputs as ``replications.bahdanau.model.RNNsearch``, wired as the authors' program.

    Args:
        batched_readout: collect the states and predict all words in one product after the loop; otherwise each
            word is predicted in its step, as the equations are written.
    """

    def __init__(
        self, *, source_vocabulary: int, target_vocabulary: int, embedding_size: int, hidden_size: int,
        alignment_size: int, maxout_size: int, batched_readout: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        n, m, a = hidden_size, embedding_size, alignment_size
        self.source, self.target = nn.Embedding(source_vocabulary, m), nn.Embedding(target_vocabulary, m)
        self.forward_cell, self.backward_cell = nn.GRUCell(m, n), nn.GRUCell(m, n)
        self.start, self.cell = nn.Linear(n, n), nn.GRUCell(m + 2 * n, n)
        self.query, self.key = nn.Linear(n, a, bias=False), nn.Linear(2 * n, a)
        self.score = nn.Linear(a, 1, bias=False)
        self.readout, self.output = nn.Linear(3 * n + m, 2 * maxout_size), nn.Linear(maxout_size, target_vocabulary)
        self.batched_readout = batched_readout

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S), (B, S), (B, T) to logits (B, T, V) and weights (B, T, S)."""
        h = self.encode(self.source(source), mask)  # (B, S, 2N)
        keys, e_y = self.key(h), self.target(target)
        e_y = torch.cat((torch.zeros_like(e_y[:, :1]), e_y[:, 1:]), dim=1)  # no word comes before the first
        e_next = e_y.roll(-1, 1)
        s = torch.tanh(self.start(h[:, 0, h.size(-1) // 2 :]))  # (B, N)
        predicted, weights = [], []
        for t in range(target.size(1)):
            energies = self.score(torch.tanh(self.query(s).unsqueeze(1) + keys)).squeeze(2)  # (B, S)
            alpha = torch.softmax(energies.masked_fill(~mask, -torch.inf), dim=1)
            c = torch.bmm(alpha.unsqueeze(1), h).squeeze(1)  # (B, 2N)
            inputs = torch.cat((s, e_y[:, t], c), dim=1)
            predicted.append(inputs if self.batched_readout else self.predict(inputs))
            weights.append(alpha)
            s = self.cell(torch.cat((e_next[:, t], c), dim=1), s)
        stacked = torch.stack(predicted, 1)
        return self.predict(stacked) if self.batched_readout else stacked, torch.stack(weights, 1)

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, S, M) to (B, S, 2N)."""
        both = []
        order = range(x.size(1))
        for cell, steps in ((self.forward_cell, order), (self.backward_cell, reversed(order))):
            h, states = x.new_zeros(len(x), cell.hidden_size), {}
            for t in steps:
                h = torch.where(mask[:, t : t + 1], cell(x[:, t], h), h)
                states[t] = h
            both.append(torch.stack([states[t] for t in order], 1))
        return torch.cat(both, dim=2)

    def predict(self, inputs: Tensor) -> Tensor:
        """(…, 3N + M) to logits (…, V)."""
        return self.output(self.readout(inputs).unflatten(-1, (-1, 2)).amax(-1))
