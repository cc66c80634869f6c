"""An encoder-decoder without order, small enough to be trained in a test."""

import torch
from torch import nn

from shared.decoding.protocol import select_sources
from tests.tasks.in_process import ToyConfig as ToyConfig


class Toy(nn.Module):
    """The next word by the last one and what it attends to in the source."""

    def __init__(self, config, source_vocabulary, target_vocabulary):
        super().__init__()
        self.source = nn.Embedding(source_vocabulary, config.size)
        self.target, self.dropout = nn.Embedding(target_vocabulary, config.size), nn.Dropout(0.1)
        self.say = nn.Linear(config.size, target_vocabulary)

    def start(self, source, mask):
        return self.source(source), mask

    def forward(self, source, source_mask, target):
        return self._read(target, self.start(source, source_mask))

    def step(self, tokens, state):
        logits, attention = self._read(tokens, state)
        return torch.log_softmax(logits, -1), attention, state

    def reorder(self, state, sources, beams):
        return tuple(select_sources(part, sources) for part in state)

    def _read(self, tokens, state):
        (source, mask), words = state, self.target(tokens)
        attention = (words @ source.mT).masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
        return self.say(self.dropout(torch.tanh(words + attention @ source))), attention
