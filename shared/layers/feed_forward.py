"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2).

    Args:
        width: D of input and output.
        hidden_size: width of the layer between (d_ff).
    """

    def __init__(self, *, width: int, hidden_size: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(width, hidden_size)
        self.w_2 = nn.Linear(hidden_size, width)
        for linear in (self.w_1, self.w_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) to (…, D)."""
        out: Tensor = self.w_2(torch.relu(self.w_1(x)))
        return out
