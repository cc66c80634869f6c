"""What training asks of a batch."""

from __future__ import annotations

from typing import Protocol

import torch


class TrainingBatch(Protocol):
    """Examples that are trained on together."""

    @property
    def tokens(self) -> int:
        """How many tokens throughput counts; padding is none."""

    def to(self, device: torch.device | str) -> TrainingBatch:
        """The same batch on another device."""
