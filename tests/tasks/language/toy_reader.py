"""The reader of the toy papers, which attends to what its memory has."""

import torch
from torch import nn

from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import memory_mask
from tests.tasks.language import toy_language_models
from tests.tasks.language.toy_language_models import ToyConfig as ToyConfig


class Toy(toy_language_models.Toy):
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
