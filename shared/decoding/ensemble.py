"""Several models that predict as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import torch
from torch import Tensor, nn

States = tuple[Any, ...]


class Ensemble(nn.Module):
    """Predicts with the mean of its members' probabilities, and attends with the mean of their weights.

    It can be called, started and searched as each member can (see :mod:`shared.decoding.protocol`); its state is
    the tuple of the members' states. Members without attention have no part in the mean of weights.

    Args:
        models: at least one, all with the same vocabularies.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        if not models:
            raise ValueError("an ensemble needs at least one model")
        self.members = nn.ModuleList(models)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing: (B, S) symbols with their mask and (B, T) previous words.

        Returns:
            (B, T, V) log-probabilities, which are logits too, and (B, T, S) attention weights or None.
        """
        predicted = (member(source, source_mask, target) for member in self._members)
        logits, weights = zip(*predicted, strict=True)
        return _mean_probability([torch.log_softmax(x, dim=-1) for x in logits]), _mean(weights)

    def start(self, source: Tensor, mask: Tensor) -> States:
        """Encode (B, S) source symbols under their mask with every member."""
        return tuple(member.start(source, mask) for member in self._members)

    def step(self, tokens: Tensor, state: States) -> tuple[Tensor, Tensor | None, States]:
        """One word further: previous words (B, k) to log p (B, k, V), weights (B, k, S) and the next state."""
        predicted = [member.step(tokens, own) for member, own in zip(self._members, state, strict=True)]
        log_p, weights, states = zip(*predicted, strict=True)
        return _mean_probability(log_p), _mean(weights), states

    def reorder(self, state: States, sources: Tensor | None, beams: Tensor) -> States:
        """Keep some sources and beams of every member's state."""
        pairs = zip(self._members, state, strict=True)
        return tuple(member.reorder(own, sources, beams) for member, own in pairs)

    @property
    def _members(self) -> Sequence[Any]:
        return cast(Sequence[Any], self.members)


def _mean_probability(log_p: Sequence[Tensor]) -> Tensor:
    """Log of the mean of probabilities that are given as logarithms."""
    return reduce(torch.logaddexp, log_p) - math.log(len(log_p))


def _mean(weights: Sequence[Tensor | None]) -> Tensor | None:
    given = [rows for rows in weights if rows is not None]
    return torch.stack(given).mean(0) if given else None
