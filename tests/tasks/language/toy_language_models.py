"""A small recurrent language model, and a generated text with recalls, for tests of the kind "language"."""

import numpy as np
import torch
from pydantic import Field
from torch import nn

from shared.config import Strict
from shared.tasks.language.corpus import Stream

VOCABULARY = 12

CARD = {
    "languages": {"text": "made-up words", "recall": "which of them repeat which"},
    "sources": [{"kind": "generated", "task": "recall", "parameters": {
        "seed": 1, "keys": 3, "values": 3, "fillers": 4, "distances": [3, 12], "filler_share": 0.2,
        "splits": {name: {"buckets": [[26, 34]], "per_bucket": count}
                   for name, count in {"train": 60, "valid": 10, "test": 12, "test_other": 4}.items()},
    }}],
    "compared": ["text"],
    "splits": dict.fromkeys(("train", "valid", "test", "test_other"), "texts"),
}  # fmt: skip


class ToyConfig(Strict):
    size: int = Field(ge=1)
    dropout: float = 0.1


def random_stream(size: int, seed: int) -> Stream:
    """Ordinary symbols, each of which is often that of three places before plus one."""
    generator = np.random.default_rng(seed)
    symbols = generator.integers(4, VOCABULARY, size).astype(np.uint16)
    for place in range(3, size):
        if generator.random() < 0.8:
            symbols[place] = 4 + (symbols[place - 3] - 3) % (VOCABULARY - 4)
    return Stream(symbols)


class ToyMemory:
    """The last state of a recurrent network, (1, B, D), cut off from its gradients, for the mode it was made in."""

    def __init__(self, reach, state, training):
        self.reach, self.state, self.training = reach, state, training

    def clear(self):
        self.state = torch.zeros_like(self.state)

    def state_dict(self):
        return {"state": self.state}

    def load_state_dict(self, state):
        self.state = state["state"]


class Toy(nn.Module):
    """Gated recurrent units, whose state goes on where ``reach.memory`` is not 0."""

    def __init__(self, config, vocabulary, other=None):
        super().__init__()
        assert other is None
        self.embedding, self.out = nn.Embedding(vocabulary, config.size), nn.Linear(config.size, vocabulary)
        self.layer, self.dropout = nn.GRU(config.size, config.size, batch_first=True), nn.Dropout(config.dropout)

    def memory(self, columns, reach):
        return ToyMemory(reach, self.out.weight.new_zeros(1, columns, self.out.in_features), self.training)

    def forward(self, inputs, targets, memory=None):
        log_probs = self._states(inputs, memory)
        return -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)

    def next_log_probs(self, inputs, memory=None):
        return self._states(inputs, memory)[:, -1]

    def _states(self, inputs, memory):
        states, last = self.layer(self.embedding(inputs), None if memory is None else memory.state)
        if memory is not None:
            assert memory.training == self.training
            if memory.reach.memory:
                memory.state = last.detach()
        return torch.log_softmax(self.out(self.dropout(states)), -1)
