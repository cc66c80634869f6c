"""A language model small enough to be trained in a test, and text for it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.decoding.protocol import Reach
from shared.tasks.language.streams import Stream

VOCABULARY = 12


def random_stream(size: int, seed: int) -> Stream:
    """Ordinary symbols, each of which is often that of three places before plus one."""
    generator = np.random.default_rng(seed)
    symbols = generator.integers(4, VOCABULARY, size).astype(np.uint16)
    for place in range(3, size):
        if generator.random() < 0.8:
            symbols[place] = 4 + (symbols[place - 3] - 3) % (VOCABULARY - 4)
    return Stream(symbols)


class ToyMemory:
    """The last state of a recurrent network, (1, B, D), cut off from its gradients."""

    def __init__(self, reach: Reach, state: Tensor, training: bool) -> None:
        self.reach, self.state, self.training = reach, state, training

    def clear(self) -> None:
        self.state = torch.zeros_like(self.state)

    def state_dict(self) -> dict[str, Tensor]:
        return {"state": self.state}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.state = state["state"]


class ToyLanguageModel(nn.Module):
    """Remembers through one recurrent state; a memory serves only the mode that it was made in."""

    def __init__(self, dropout: float = 0.0, size: int = 16) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(VOCABULARY, size), nn.Dropout(dropout)
        self.recurrent, self.output = nn.GRU(size, size, batch_first=True), nn.Linear(size, VOCABULARY)

    def memory(self, columns: int, reach: Reach) -> ToyMemory:
        return ToyMemory(reach, self.output.weight.new_zeros(1, columns, self.output.in_features), self.training)

    def forward(self, inputs: Tensor, targets: Tensor, memory: ToyMemory | None = None) -> Tensor:
        before = None if memory is None else memory.state
        states, last = self.recurrent(self.dropout(self.embedding(inputs)), before)
        if memory is not None:
            assert memory.training == self.training
            if memory.reach.memory:
                memory.state = last.detach()
        logits = self.output(self.dropout(states))
        return functional.cross_entropy(logits.mT, targets, reduction="none")
