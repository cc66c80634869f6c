"""How much several weightings of one text repeat each other (Lin et al. 2017, section 2.2).

Shape letters: B batch, n words, r rows.
"""

from __future__ import annotations

import torch
from torch import Tensor


def redundancy_penalty(a: Tensor) -> Tensor:
    """P = ‖AAᵀ − I‖_F² (equation 8) of every text: weights A (B, r, n) to (B,).

    It is the *square* of the Frobenius norm, as the equation prints it: the sum over the squared entries. Rows are
    distributions over n words, so for r > n they cannot be orthogonal and P cannot reach zero.
    """
    with torch.autocast(a.device.type, enabled=False):  # where P is small, bfloat16 would round all of it away
        a = a.to(torch.promote_types(a.dtype, torch.float32))
        overlap = a @ a.transpose(1, 2)  # (B, r, r)
        return (overlap - torch.eye(a.size(1), dtype=a.dtype, device=a.device)).square().sum((1, 2))
