"""What training asks of a batch, and what classifiers and captioners answer.

It is free of Lightning, so that models may import it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class TrainingBatch(Protocol):
    """Examples that are trained on together."""

    @property
    def tokens(self) -> int:
        """How many tokens throughput counts; padding is none."""

    def to(self, device: torch.device | str) -> TrainingBatch:
        """The same batch on another device."""


class Classified(NamedTuple):
    """What ``model(texts, masks)`` gives, where both have one (B, n) tensor per text of an example."""

    logits: Tensor
    """(B, C), one column per class."""
    attention: tuple[Tensor, ...] = ()
    """Per text (B, r, n), zero at padding, each row with the sum one; none if the model does not attend."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the cross-entropy of each example: a penalty times its coefficient."""


class Captioned(NamedTuple):
    """What ``model(features, captions, regions)`` gives of B captions of T symbols and pictures with L places."""

    nats: Tensor
    """(B, T), minus the log-probability of each symbol after those before it; zero at padding."""
    attention: Tensor | None = None
    """(B, T, L), with what weights each symbol was predicted; none if the model does not attend."""
    gates: Tensor | None = None
    """(B, T), the factor β on what is attended to at each symbol; none if the model has no such gate."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the summed nats of each caption: penalties, an estimator's surrogate."""
