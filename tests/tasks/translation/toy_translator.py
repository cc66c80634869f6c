"""An encoder-decoder without order, small enough to be trained in a test."""

import torch
from torch import nn

from shared.decoding.protocol import select_beams
from tests.tasks.in_process import ToyConfig as ToyConfig


class Toy(nn.Module):
    """The next word by the last one and the mean of the source; shows no attention."""

    def __init__(self, config, source_vocabulary, target_vocabulary):
        super().__init__()
        self.source = nn.Embedding(source_vocabulary, config.size)
        self.target, self.dropout = nn.Embedding(target_vocabulary, config.size), nn.Dropout(0.1)
        self.say = nn.Linear(config.size, target_vocabulary)

    def start(self, source, mask):
        """(B, S) to the mean of the source's embeddings, (B, 1, D)."""
        weights = mask / mask.sum(1, keepdim=True)
        return weights.unsqueeze(1) @ self.source(source)

    def forward(self, source, source_mask, target):
        read = torch.tanh(self.target(target) + self.start(source, source_mask))
        return self.say(self.dropout(read)), None

    def step(self, tokens, state):
        return torch.log_softmax(self.say(torch.tanh(self.target(tokens) + state)), -1), None, state

    def reorder(self, state, sources, beams):
        return select_beams(state, sources, beams)
