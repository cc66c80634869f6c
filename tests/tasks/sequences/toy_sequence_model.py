"""A model of separate sequences small enough to be trained in a test, and sequences for it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from shared.data.ragged import RaggedArray
from shared.layers.outputs import CategoricalOutput
from shared.tasks.sequences.batches import Sequences
from shared.tasks.sequences.proteins import proteins
from shared.tasks.sequences.settings import FIRST, VOCABULARY


def random_proteins(count: int, seed: int) -> Sequences:
    """Letters of which each is often that of two places before, some of them to be predicted from all others."""
    generator = np.random.default_rng(seed)
    lines = []
    for length in generator.integers(5, 12, count):
        letters = generator.integers(FIRST, FIRST + 6, length)
        for place in range(2, length):
            if generator.random() < 0.8:
                letters[place] = letters[place - 2]
        lines.append(letters.tolist())
    return proteins(RaggedArray.pack(lines, np.uint8), masked=True)


class ToySequenceModel(nn.Module):
    """Reads both ways; to every embedding is added what is drawn before each update. Remembers the updates."""

    origin: Tensor
    noise: Tensor

    def __init__(self, dropout: float = 0.0, size: int = 8) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(VOCABULARY, size), nn.Dropout(dropout)
        self.recurrent = nn.GRU(size, size, batch_first=True, bidirectional=True)
        self.output = CategoricalOutput(width=2 * size, symbols=VOCABULARY)
        self.register_buffer("origin", torch.randint(2**31, ()))
        self.register_buffer("noise", torch.zeros(size))
        self.updates: list[int] = []

    def at_update(self, number: int) -> None:
        self.updates.append(number)
        generator = torch.Generator().manual_seed(int(self.origin) + number)
        self.noise.copy_(0.3 * torch.randn(self.noise.shape, generator=generator))

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.dropout(self.embedding(inputs) + self.noise)
        return self.recurrent(x if mask is None else x * mask.unsqueeze(-1))[0]
