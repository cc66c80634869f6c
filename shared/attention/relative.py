"""Multi-head attention by distance: relative positions, and a memory before the queries.

Queries are the last Q of S positions: query i stands at position i + M of the keys, where M = S - Q is the length of
the memory. It sees the keys j ≤ i + M, at the distances i + M - j ≥ 0.

Scores are those of Transformer-XL (Dai et al. 2019, section 3.3), of which Shaw et al. (2018) have two terms.

Shape letters: B batch, Q queries, S keys, D model width, H heads, K width of queries, keys and values, C distances that
have a vector of their own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.multi_head import KeysValues
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as


def shift(x: Tensor) -> Tensor:
    """From one column per distance to one per key (Dai et al. 2019, appendix B), as a view: nothing is copied.

    With rows one longer than there are keys, entry (i, j) of the result, column j + Q - 1 - i of row i, lies S elements
    behind entry (i - 1, j).

    Args:
        x: (…, Q, S + 1), contiguous in the last two axes; its columns are the distances S - 1 … 0, and one that is not
            read at distances from 0 on.

    Returns:
        (…, Q, S). Entries of keys later than their query are undefined.
    """
    queries, keys = x.size(-2), x.size(-1) - 1
    shifted: Tensor = x.flatten(-2).narrow(-1, queries - 1, queries * keys).unflatten(-1, (queries, keys))
    return shifted


def by_distance(table: Tensor, keys: int) -> Tensor:
    """The vectors (…, S, K) of the distances S - 1 … 0, from those (…, C, K) of 0 … C - 1.

    Distances from C on have the last one: a table of clamp_len + 1 rows is Transformer-XL's ``clamp_len``.
    """
    distances = torch.arange(keys - 1, -1, -1, device=table.device)
    return table.index_select(-2, distances.clamp(max=table.size(-2) - 1))


def memory_mask(queries: int, keys: int, *, window: int | None = None, device: torch.device | None = None) -> Tensor:
    """(Q, S) bool, true where a query may see a key: at a distance from 0 to before ``window``.

    With the memory's full length for ``window`` it is Transformer-XL's ``same_length``: every query then sees that many
    keys, itself included. Segments in turn do what one long pass does when the memory holds at least window - 1.
    """
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return seen if window is None else seen.triu(keys - queries - window + 1)


def attend_by_distance(
    q: Tensor, k: Tensor, v: Tensor, p: Tensor, biases: GlobalBiases | None, mask: Tensor, *, dropout: float = 0.0,
    weights: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The twin of :func:`attend`, which never holds a vector for each pair, and gives weights only if they are wanted.

    Hidden keys get a finite score so low that their weight is zero. Adding it costs no pass over the scores in the
    backward pass, and no row becomes NaN. Without gradient, dropout and weights PyTorch's fused kernel is called. With
    a gradient the scores of distances have no fused kernel on a CPU, and PyTorch's fallback is slower than this code.
    """
    scale = 1 / math.sqrt(q.size(-1))
    to_keys = to_distances = q
    if biases is not None:
        to_keys, to_distances = (q + bias.to(q.dtype).unsqueeze(1) for bias in (biases.u, biases.v))
    # Heads before the batch: every sequence is then in one product with a head's distances.
    to_keys, to_distances, k, v = (x.transpose(0, 1) for x in (to_keys, to_distances, k, v))
    by_pair = to_distances.flatten(1, 2) @ functional.pad(p * scale, (0, 0, 0, 1)).mT  # (H, B·Q, S + 1)
    hidden = by_pair.new_zeros(()).masked_fill(~mask, torch.finfo(by_pair.dtype).min / 2)
    bias = shift(by_pair.unflatten(1, to_distances.shape[1:3])) + hidden  # (H, B, Q, S)
    blind = ~mask.any(-1, keepdim=True)
    if not (weights or dropout or torch.is_grad_enabled()):
        fused = functional.scaled_dot_product_attention(to_keys, k, v, attn_mask=bias, scale=scale)
        return fused.masked_fill(blind, 0).transpose(0, 1), None
    scores = bias.flatten(0, 1).baddbmm_(to_keys.flatten(0, 1), k.flatten(0, 1).mT, alpha=scale)
    a = torch.softmax(scores, dim=-1)  # (H·B, Q, S)
    heads = (functional.dropout(a, dropout) @ v.flatten(0, 1)).unflatten(0, k.shape[:2]).masked_fill(blind, 0)
    return heads.transpose(0, 1), a.view_as(bias).masked_fill(~mask, 0).transpose(0, 1) if weights else None


@runs_as(attend_by_distance)
def attend(
    q: Tensor, k: Tensor, v: Tensor, p: Tensor, biases: GlobalBiases | None, mask: Tensor, *, dropout: float = 0.0,
    weights: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """softmax(A / √K) v, with the terms (a) to (d) of section 3.3 of Dai et al.; Shaw et al. have (a) and (b).

    A_ij = (a) q_iᵀ k_j + (b) q_iᵀ p_{i-j} + (c) uᵀ k_j + (d) vᵀ p_{i-j}, where q_i = W_q h_i, k_j = W_{k,E} h̃_j and
    p_{i-j} = W_{k,R} R_{i-j}.

    Args:
        q: (B, H, Q, K).
        k: (B, H, S, K).
        v: (B, H, S, K).
        p: (H, S, K), of the distances S - 1 … 0.
        biases: u and v, if there are any.
        mask: bool, broadcastable to (B, Q, S), true where a query may look, never at a later key; the result of a query
            that may look nowhere is zero.
        dropout: probability with which a weight is dropped.
        weights: whether they are wanted.

    Returns:
        (B, H, Q, K), and the weights (B, H, Q, S) before dropout.
    """
    queries, keys = q.size(2), k.size(2)
    i, j = torch.arange(keys - queries, keys, device=q.device).unsqueeze(1), torch.arange(keys, device=q.device)
    p = p[:, keys - 1 - (i - j).clamp(min=0)]  # (H, Q, S, K); what comes after a query is hidden from it
    scores = q @ k.mT  # (a)
    scores = scores + torch.einsum("bhik,hijk->bhij", q, p)  # (b)
    if biases is not None:
        scores = scores + torch.einsum("hk,bhjk->bhj", biases.u, k).unsqueeze(2)  # (c)
        scores = scores + torch.einsum("hk,hijk->hij", biases.v, p)  # (d)
    a = masked_softmax(scores / math.sqrt(q.size(-1)), mask.unsqueeze(-3))
    return functional.dropout(a, dropout) @ v, a


class GlobalBiases(nn.Module):
    """u and v, with which every query meets keys and distances (terms c and d of section 3.3).

    One instance given to all layers is shared by them, as in the released PyTorch code; or each layer has its own.

    Args:
        heads: H.
        key_size: K.
    """

    def __init__(self, *, heads: int, key_size: int) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.empty(heads, key_size))
        self.v = nn.Parameter(torch.empty(heads, key_size))
        _reset(self)


class ProjectedDistances(nn.Module):
    """W_{k,R} R_{i-j}: an encoding of every distance, such as sinusoids, projected for a layer's heads.

    Args:
        width: D of an encoding.
        heads: H.
        key_size: K.
    """

    def __init__(self, *, width: int, heads: int, key_size: int) -> None:
        super().__init__()
        self.heads = heads
        self.w_r = nn.Linear(width, heads * key_size, bias=False)
        _reset(self)

    def forward(self, encodings: Tensor, keys: int) -> Tensor:
        """Encodings (C, D) of the distances 0 … C - 1 to (H, S, K); from C on distances are clamped.

        It depends on no sequence: a batch needs it once, and so do all segments of one length while W_{k,R} is not
        learning.
        """
        p: Tensor = self.w_r(encodings[:keys]).unflatten(-1, (self.heads, -1)).transpose(0, 1)
        return by_distance(p, keys)


class LearnedDistances(nn.Module):
    """a^K of Shaw et al. (2018, section 3.2): a learned vector for every distance up to a largest, shared by the heads.

    Their a^V, without which their table 3 finds the same BLEU, is left out, and so are distances to what comes later.

    Args:
        largest: k, the distance from which on all have one vector.
        key_size: K.
    """

    def __init__(self, *, largest: int, key_size: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(largest + 1, key_size))
        _reset(self)

    def forward(self, encodings: object, keys: int) -> Tensor:
        """(1, S, K), as :class:`ProjectedDistances` has them, whatever the encodings."""
        return by_distance(self.table.unsqueeze(0), keys)


class RelativeMultiHeadAttention(nn.Module):
    """A_ij = ((W_q x_i + u) · W_{k,E} x_j + (W_q x_i + v) · p_{i-j}) / √K (Dai et al. 2019, section 3.3).

    With :class:`ProjectedDistances` and biases it is Transformer-XL's, with :class:`LearnedDistances` and no biases
    that of Shaw et al. No projection has a bias, and all begin at N(0, 0.02²).

    Args:
        width: D.
        heads: H.
        key_size: K.
        positions: from encodings of distances and S to p (H or 1, S, K).
        biases: u and v, if there are any.
        dropout: probability with which a weight is dropped in training.
    """

    def __init__(
        self, *, width: int, heads: int, key_size: int, positions: nn.Module, biases: GlobalBiases | None,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.w_q = nn.Linear(width, heads * key_size, bias=False)
        self.w_kv = nn.Linear(width, 2 * heads * key_size, bias=False)
        self.w_o = nn.Linear(heads * key_size, width, bias=False)
        for linear in (self.w_q, self.w_kv, self.w_o):
            _reset(linear)
        self.positions, self.biases = positions, biases

    def project(self, context: Tensor) -> KeysValues:
        """(B, S, D), the memory and after it the queries' own positions, to keys and values (B, H, S, K)."""
        k, v = self.w_kv(context).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return k, v

    def forward(
        self, x: Tensor, context: KeysValues, p: Tensor, *, mask: Tensor | None = None, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend from (B, Q, D) to memory and self.

        Args:
            x: (B, Q, D), the last of the context's positions.
            context: what :meth:`project` made of them all.
            p: what ``positions`` made of S.
            mask: bool, broadcastable to (B, Q, S), true where a query may see a key that is not after it; default: all
                of these keys. See :func:`memory_mask`.
            weights: whether they are wanted, which takes the slower path.

        Returns:
            (B, Q, D), and the weights (B, H, Q, S) before dropout or None.
        """
        (k, v), q = context, self.w_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, Q, K)
        every = memory_mask(q.size(2), k.size(2), device=q.device)
        heads, a = attend(
            q, k, v, p.expand(self.heads, -1, -1), self.biases, every if mask is None else every & mask,
            dropout=self.dropout if self.training else 0.0, weights=weights,
        )  # fmt: skip
        out: Tensor = self.w_o(heads.transpose(1, 2).flatten(2))
        return out, a


@torch.no_grad()
def _reset(module: nn.Module, std: float = 0.02) -> None:
    """All weights ~ N(0, std²)."""
    for parameter in module.parameters():
        parameter.normal_(std=std)
