"""A bidirectional LSTM over right-padded batches, whose results padding does not change.

The biases are the weights of a further input that is 1 at words and 0 at padding. So a unit that is at rest and reads
padding stays at rest exactly: the backward direction, which meets the padding first, starts each text as if there were
none. Packed sequences give the same numbers, but on a CPU they leave PyTorch's fused kernel.

Shape letters: B batch, n words, I input width, u state width per direction.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BidirectionalLSTM(nn.Module):
    """h_t = [h→_t; h←_t], each by an LSTM with one bias per gate: 2 · 4u(I + 1 + u) parameters.

    Args:
        input_size: I.
        hidden_size: u.
    """

    def __init__(self, *, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size + 1, hidden_size, bias=False, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, n, I) inputs, right-padded, and their mask (B, n), true at words, to (B, n, 2u), zero at padding."""
        words = mask.unsqueeze(-1).to(x.dtype)  # (B, n, 1)
        h: Tensor = self.lstm(torch.cat((x * words, words), dim=-1))[0]  # (B, n, 2u)
        return h * words.to(h.dtype)
