"""Toy models that attend, for tests of what is shown of attention: a translator, and a reader with a memory."""

import torch
from torch import nn

from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import memory_mask
from shared.decoding.protocol import select_sources
from tests.tasks.language.toy_language_models import Toy as RecurrentReader
from tests.tasks.translation import toy_translator


class Translator(toy_translator.Toy):
    """The next word by the last one and what it attends to in the source."""

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
        return self.say(torch.tanh(words + attention @ source)), attention


class Reader(RecurrentReader):
    """Attention to all that the memory has, without positions."""

    def __init__(self, config, vocabulary, other=None):
        super().__init__(config, vocabulary, other)
        size = config.size
        self.layer = MultiHeadAttention(query_size=size, heads=2, key_size=size // 2, value_size=size // 2)
        self.norm = nn.LayerNorm(size)

    def memory(self, columns, reach):
        memory = super().memory(columns, reach)
        memory.state = memory.state.new_zeros(columns, 0, memory.state.size(-1))
        return memory

    def _states(self, inputs, memory):
        read = self.embedding(inputs)
        kept = None if memory is None else memory.state
        context = read if kept is None else torch.cat((kept, read), dim=1)
        mask = memory_mask(read.size(1), context.size(1))
        states, _ = self.layer(read, self.layer.project(context), mask=mask)
        if memory is not None and memory.reach.memory:
            memory.state = context[:, -memory.reach.memory :].detach()
        return torch.log_softmax(self.out(self.dropout(self.norm(read + states))), -1)
