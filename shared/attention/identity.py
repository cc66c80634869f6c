"""What a layer of attention would cost if attention itself were free (Choromanski et al. 2021, section 4.1, figure 3).

Shape letters: B batch, Q queries, S keys, D model width, H heads, V value width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from shared.attention.multi_head import KeysValues, MultiHeadAttention


class IdentityAttention(MultiHeadAttention):
    """Every position gets its own value only: the paper's "X (OPT)", an upper bound of the possible speed.

    All four projections are computed, although the queries and keys are not used. Autograd computes no gradient of the
    queries' matrix. Keys and values share one matrix, and autograd computes its whole gradient, which is zero for the
    keys. The measured time therefore includes the backward pass of the keys' projection, but not of the queries'.
    """

    def forward(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """See :class:`MultiHeadAttention`; there are as many queries as values, and no mask changes anything."""
        q, (_, v) = self.queries(x), memory
        a = torch.eye(v.size(2), dtype=q.dtype, device=q.device).expand(*q.shape[:3], -1) if weights else None
        return self.w_o(v.transpose(1, 2).flatten(2)), a
