"""Positional encodings, which stand beside embeddings or are added to them.

Shape letters: T positions, D model width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from shared.errors import ReplicationError


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5).

    Args:
        positions: (T,) of any number type.
        width: D, even.

    Returns:
        (T, D) float32; angles are computed in float64, since positions may be large.
    """
    if width % 2:
        raise ValueError(f"sinusoids come in pairs, so the width must be even, not {width}")
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device).double() * (-math.log(10_000.0) / width))
    angles = positions.double().unsqueeze(1) * rates  # (T, D/2)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


class SinusoidalPositions(nn.Module):
    """Sinusoids, computed once up to the longest sequence seen so far.

    Args:
        width: D, even.
    """

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.width = width
        # Processes that share a run broadcast their buffers, and the table of each is as long as its longest sequence.
        self.table = sinusoids(torch.arange(64), width)
        self.place: Tensor
        self.register_buffer("place", torch.empty(0), persistent=False)  # moves with the module, and takes others along

    def forward(self, start: int, stop: int) -> Tensor:
        """Encodings (stop - start, D) of the positions from ``start`` to before ``stop``."""
        if stop > len(self.table):
            with torch.inference_mode(False):  # autograd cannot use tensors of inference mode later
                self.table = sinusoids(torch.arange(2 * stop, device=self.place.device), self.width)
        if self.table.device != self.place.device or self.table.dtype != self.place.dtype:
            with torch.inference_mode(False):
                self.table = self.table.to(self.place)
        return self.table[start:stop]


class LearnedPositions(nn.Module):
    """A learned vector for every position (Gehring et al. 2017; row E of table 3 of Vaswani et al. 2017).

    Args:
        count: how many positions have one. Those that never occur in training keep their random initial vectors.
        width: D.
    """

    def __init__(self, *, count: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(count, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, start: int, stop: int) -> Tensor:
        """Encodings (stop - start, D) of the positions from ``start`` to before ``stop``.

        Raises:
            ReplicationError: there are not so many.
        """
        if stop > len(self.table):
            raise ReplicationError(
                f"there are {len(self.table)} learned positions, and a sequence has {stop} symbols; raise their count "
                "above the longest source, and above what decoding may add to it."
            )
        return self.table[start:stop]


class NoPositions(nn.Module):
    """Nothing is added: the order of the symbols is lost on attention."""

    def forward(self, start: int, stop: int) -> float:
        """Zero."""
        return 0.0
