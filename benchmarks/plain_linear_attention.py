"""Causal linear attention as public programs compute it on a CPU: the comparison partner of benchmarks and tests.

Outer products φ(k_j) v_jᵀ of all positions of a piece are made, summed up, and multiplied with the queries; autograd
keeps what it needs of all of them. That is the way of performer-pytorch's ``causal_linear_attention_noncuda``; with a
single piece, of many a notebook.

Shape letters: B batch, H heads, T positions, C features, V width of values.
"""

from __future__ import annotations

import torch
from torch import Tensor


def summed_outer_products(q: Tensor, k: Tensor, v: Tensor, *, pieces: int = 128) -> Tensor:
    """φ(q) and φ(k) (B, H, T, C) and v (B, H, T, V) to (B, H, T, V)."""
    sums, normaliser, out = torch.zeros(()), torch.zeros(()), []
    for q_here, k_here, v_here in zip(*(x.chunk(pieces, dim=2) for x in (q, k, v)), strict=True):
        z = normaliser + k_here.cumsum(2)
        s = sums + torch.einsum("bhtc,bhtv->bhtcv", k_here, v_here).cumsum(2)  # (B, H, T, C, V)
        weight = 1 / torch.einsum("bhtc,bhtc->bht", q_here, z)
        out.append(torch.einsum("bhtcv,bhtc,bht->bhtv", s, q_here, weight))
        sums, normaliser = s[:, :, -1:], z[:, :, -1:]
    return torch.cat(out, dim=2)
