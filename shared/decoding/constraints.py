"""Which hypotheses are allowed, and how they are ranked: the part that all searches share.

Shape letters: B sources (B′ of them still searched), k beams of a source, V vocabulary, C candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from shared.errors import ReplicationError

Normalisation = Literal["none", "mean", "gnmt"]


@dataclass(frozen=True)
class Constraints:
    """Which symbols may come, and when a hypothesis may and must end.

    The code of Bahdanau et al. takes half the source length, rounded down, as ``minimum`` and three times the
    source length as ``maximum``, and forbids the unknown word for the "No UNK" column of table 1.
    """

    begin: int
    """The symbol before the first one; never predicted."""
    end: int
    """The symbol that ends a hypothesis; it may be the same as ``begin`` or ``padding``."""
    padding: int
    """What fills a row after the end; never predicted."""
    minimum: Tensor
    """(B,) number of symbols that must come before the end symbol."""
    maximum: Tensor
    """(B,) number of symbols, with the end symbol, after which a hypothesis stops unfinished; at least 1."""
    forbidden: Sequence[int] = ()
    """Further symbols that are never predicted."""

    @cached_property
    def _excluded(self) -> Tensor:
        never = {self.begin, self.padding, *self.forbidden} - {self.end}
        return torch.tensor(sorted(never), dtype=torch.long, device=self.minimum.device)

    def restrict(self, log_probs: Tensor, sources: Tensor, length: int) -> Tensor:
        """Put -inf where a symbol may not come.

        Args:
            log_probs: (B′, k, V) of the next symbol; overwritten if they are float32.
            sources: (B′,) which sources the rows belong to.
            length: number of symbols before this one.

        Returns:
            (B′, k, V) float32.
        """
        log_probs = log_probs.float().index_fill_(-1, self._excluded, -torch.inf)
        log_probs[..., self.end].masked_fill_((length < self.minimum[sources]).unsqueeze(1), -torch.inf)
        return log_probs


def length_divisor(length: Tensor, normalisation: Normalisation, alpha: float) -> Tensor:
    """The divisor of a log-probability for ranking; it does not decrease as hypotheses become longer.

    ``none``: 1. ``mean``: the length. ``gnmt``: ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14).

    Args:
        length: number of symbols, the end symbol included.
        normalisation: one of the three.
        alpha: the exponent of ``gnmt``, at least 0.

    Raises:
        ValueError: the normalisation is unknown, or ``alpha`` is negative.
    """
    if normalisation == "none":
        return torch.ones_like(length, dtype=torch.float32)
    if normalisation == "mean":
        return length.float()
    if normalisation == "gnmt" and alpha >= 0:
        return torch.pow((5 + length.float()) / 6, alpha)
    raise ValueError(f"no length normalisation {normalisation!r} with alpha {alpha}")


def best_first(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest ``count`` of each row: (B, C) to values and indices (B, min(count, C)), best first.

    Of equal scores the one that stands first wins, on every device; ``topk`` alone leaves that open. Among
    -inf any may come.

    Raises:
        ReplicationError: a score is NaN, which ``topk`` would rank highest.
    """
    count = min(count, scores.size(1))
    values, indices = scores.topk(min(count + 1, scores.size(1)))
    if values.isnan().any():
        raise ReplicationError("The model predicts NaN; its weights have diverged, so train it again.")
    last = values[:, count - 1 : count]
    tied = ((values[:, count:] == last) & (last > -torch.inf)).any(1)
    indices = indices[:, :count]
    if tied.any():  # topk may have kept the wrong one of equals
        indices[tied] = scores[tied].sort(dim=1, descending=True, stable=True).indices[:, :count]
    indices = indices.sort(dim=1).values
    values, order = scores.gather(1, indices).sort(dim=1, descending=True, stable=True)
    return values, indices.gather(1, order)
