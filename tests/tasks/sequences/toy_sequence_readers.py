"""Small models of sequences whose answers can be worked out by hand, for tests of how they are judged."""

import torch
from torch import nn

from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics
from tests.tasks.sequences.toy_sequence_models import Toy

WIDTH = 6


class MeanReader(nn.Module):
    """The state of a place is the mean embedding of those before it and its own, or of all symbols if not causal.

    Attributes:
        reads: of every call what was read, a row for each sequence without its padding.
    """

    def __init__(self, symbols, causal, *, seed=3, levels=None):
        super().__init__()
        self.causal, self.reads = causal, []
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(symbols, WIDTH)
            if levels is None:
                self.output = CategoricalOutput(width=WIDTH, symbols=symbols)
            else:
                self.output = MixtureOfLogistics(width=WIDTH, levels=levels, components=2)
            nn.init.normal_(self.output.projection.weight, std=0.2 if levels else 1.0)

    def forward(self, inputs, mask=None):
        assert torch.is_inference_mode_enabled()
        mask = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        self.reads.append([row[kept].tolist() for row, kept in zip(inputs, mask, strict=True)])
        x = self.embedding(inputs) * mask.unsqueeze(-1)
        if self.causal:
            return x.cumsum(1) / mask.cumsum(1).unsqueeze(-1) + self.embedding(inputs)
        return x.sum(1, keepdim=True) / mask.sum(1)[:, None, None] + self.embedding(inputs)

    def at_update(self, number):
        raise AssertionError("nothing is trained")

    generate = Toy.generate


class Copier(MeanReader):
    """Knows the copy task, but for the symbols that it cannot read."""

    def __init__(self, symbols, blind=()):
        super().__init__(symbols, causal=True)
        self.blind, self.output = blind, Certain()

    def forward(self, inputs, mask=None):
        places, size = torch.arange(inputs.size(1)), inputs[:, 1:].eq(0).int().argmax(1, keepdim=True)
        known = inputs.gather(1, (places - size).clamp(min=0))
        for symbol in self.blind:
            known = known.where(known != symbol, 0)
        return known.unsqueeze(-1)


class Certain(nn.Module):
    """The state is the symbol that has nine tenths, of ten."""

    def log_probs(self, h):
        return torch.where(h == torch.arange(10), 0.9, 0.1 / 9).log()

    def forward(self, h, targets):
        return -self.log_probs(h).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


class Broken(CategoricalOutput):
    """Predicts no number where the target is one of these symbols."""

    def __init__(self, output, symbols):
        super().__init__(width=WIDTH, symbols=output.projection.out_features)
        self.load_state_dict(output.state_dict())
        self.symbols = torch.tensor(symbols)

    def log_probs(self, h):
        return super().log_probs(h).index_fill(-1, self.symbols, float("nan"))

    def forward(self, h, targets):
        return super().forward(h, targets).masked_fill(torch.isin(targets, self.symbols), float("nan"))
