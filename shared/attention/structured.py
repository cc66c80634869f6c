"""Structured self-attention: several weightings of one text at once (Lin et al. 2017, section 2.1 and 2.2).

Shape letters: B batch, n words, D annotation width (2u), d_a attention width, r rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax


class StructuredSelfAttention(nn.Module):
    """A = softmax(W_s2 tanh(W_s1 Hᵀ)) over the words (equation 6); neither product has a bias.

    Args:
        annotation_size: D, the width of an annotation h_t.
        attention_size: d_a.
        rows: r, how many weightings there are.
    """

    def __init__(self, *, annotation_size: int, attention_size: int, rows: int) -> None:
        super().__init__()
        self.w_s1 = nn.Linear(annotation_size, attention_size, bias=False)
        self.w_s2 = nn.Linear(attention_size, rows, bias=False)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Weights A (B, r, n): of annotations H (B, n, D) under their mask (B, n), true at words."""
        scores = self.w_s2(torch.tanh(self.w_s1(h))).transpose(1, 2)  # (B, r, n)
        return masked_softmax(scores, mask.unsqueeze(1))


def redundancy_penalty(a: Tensor) -> Tensor:
    """P = ‖AAᵀ − I‖_F² (equation 8) of every text: weights A (B, r, n) to (B,).

    It is the *square* of the Frobenius norm, as the equation prints it: the sum over the squared entries. Rows are
    distributions over n words, so for r > n they cannot be orthogonal and P cannot reach zero.
    """
    with torch.autocast(a.device.type, enabled=False):  # where P is small, bfloat16 would round all of it away
        a = a.to(torch.promote_types(a.dtype, torch.float32))
        overlap = a @ a.transpose(1, 2)  # (B, r, r)
        return (overlap - torch.eye(a.size(1), dtype=a.dtype, device=a.device)).square().sum((1, 2))
