"""Set Transformer (Lee, Lee, Kim, Kosiorek, Choi & Teh 2019), and the pooling of Zaheer et al. (2017) beside it.

Names are the paper's, whose section 3 has the equations. An encoder makes features of elements, in whose light each of
the others may stand; a decoder makes k outputs of all features. No part depends on the order of the elements.

Shape letters: B sets, n elements of the largest, X numbers of an element, D model width, H heads, m inducing points,
k outputs, O numbers of an output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from shared.attention.multi_head import MultiHeadAttention

Encoder = Literal["rff", "sab", "isab"]
"""What each block of the encoder is: apart from the other elements; SAB; or ISAB_m."""
Pooling = Literal["attention", "mean", "max"]
"""What makes outputs of features: PMA_k, or as in Deep Sets the mean or the maximum."""


def row_wise(size: int, width: int) -> nn.Module:
    """rFF: one layer that works on each row apart; (…, size) to (…, D)."""
    return nn.Sequential(nn.Linear(size, width), nn.ReLU())


class MAB(nn.Module):
    """MAB(X, Y) = LayerNorm(H + rFF(H)), H = LayerNorm(X + Multihead(X, Y, Y)) (equations 6 and 7).

    Args:
        width: D.
        heads: H.
        norm: whether there is a LayerNorm; the authors' experiments are without.
    """

    def __init__(self, *, width: int, heads: int, norm: bool) -> None:
        super().__init__()
        size = width // heads
        self.multihead = MultiHeadAttention(query_size=width, heads=heads, key_size=size, value_size=size)
        self.multihead.scale = width**-0.5  # of all heads together (section 2.2), not of one
        self.rff = row_wise(width, width)
        self.norm_h, self.norm = (nn.LayerNorm(width) if norm else nn.Identity() for _ in range(2))

    def forward(self, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, q, D) that look at (B, n, D), where the mask (B, n) is true, to (B, q, D)."""
        seen = None if mask is None else mask[:, None, None]
        attended, _ = self.multihead(x, self.multihead.project(y), mask=seen)
        h = self.norm_h(x + attended)
        return self.norm(h + self.rff(h))


class SAB(nn.Module):
    """SAB(X) = MAB(X, X) (equation 8); O(n²).

    Args:
        mab: makes a :class:`MAB`.
    """

    def __init__(self, mab: Callable[[], MAB]) -> None:
        super().__init__()
        self.mab = mab()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, n, D) to (B, n, D); anything where the mask (B, n) is false."""
        return self.mab(x, x, mask)


class ISAB(nn.Module):
    """ISAB_m(X) = MAB(X, H), H = MAB(I, X) (equations 9 and 10), with m inducing points I that are learned; O(n m).

    Args:
        mab: makes a :class:`MAB`.
        points: m.
        width: D.
    """

    def __init__(self, mab: Callable[[], MAB], *, points: int, width: int) -> None:
        super().__init__()
        self.points = nn.Parameter(nn.init.xavier_uniform_(torch.empty(points, width)))
        self.mab_h, self.mab = mab(), mab()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """As :class:`SAB`."""
        h = self.mab_h(self.points.expand(len(x), -1, -1), x, mask)  # (B, m, D)
        return self.mab(x, h)


class PMA(nn.Module):
    """PMA_k(Z) = MAB(S, rFF(Z)) (equation 11), with k seed vectors S that are learned.

    Args:
        mab: makes a :class:`MAB`.
        seeds: k.
        width: D.
    """

    def __init__(self, mab: Callable[[], MAB], *, seeds: int, width: int) -> None:
        super().__init__()
        self.seeds = nn.Parameter(nn.init.xavier_uniform_(torch.empty(seeds, width)))
        self.rff, self.mab = row_wise(width, width), mab()

    def forward(self, z: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, n, D) to (B, k, D)."""
        return self.mab(self.seeds.expand(len(z), -1, -1), self.rff(z), mask)


class SetModel(nn.Module):
    """Encoder (equations 13 and 14), decoder (15 and 16) and a linear layer to the numbers of each output.

    Deep Sets have an rFF for every block, on features before pooling and on their mean or maximum after it; a last
    linear layer makes all k outputs of it.

    Args:
        elements: X.
        outputs: k and O.
        encoder: see :data:`Encoder`.
        pooling: see :data:`Pooling`.
        blocks: of the encoder.
        decoder: SABs after PMA, or rFFs after pooling.
        width: D.
        heads: H.
        points: m.
        norm: see :class:`MAB`.
    """

    def __init__(
        self, *, elements: int, outputs: tuple[int, int], encoder: Encoder, pooling: Pooling, blocks: int, decoder: int,
        width: int, heads: int, points: int, norm: bool,
    ) -> None:  # fmt: skip
        super().__init__()

        def mab() -> MAB:
            return MAB(width=width, heads=heads, norm=norm)

        makes: dict[str, Callable[[], nn.Module]] = {
            "rff": lambda: row_wise(width, width),
            "sab": lambda: SAB(mab),
            "isab": lambda: ISAB(mab, points=points, width=width),
        }
        self.pooling: Pooling = pooling
        self.outputs, numbers = outputs
        self.apart = encoder == "rff"
        self.embedding = nn.Linear(elements, width) if encoder != "rff" else row_wise(elements, width)
        self.encoder = nn.ModuleList(makes[encoder]() for _ in range(blocks))
        self.pma = PMA(mab, seeds=self.outputs, width=width) if pooling == "attention" else None
        self.decoder = nn.Sequential(*(makes["sab" if self.pma else "rff"]() for _ in range(decoder)))
        self.output = nn.Linear(width, numbers if self.pma else self.outputs * numbers)

    def features(self, elements: Tensor, mask: Tensor) -> Tensor:
        """The encoder: (B, n, X) and the mask (B, n) to (B, n, D), anything where the mask is false."""
        z: Tensor = self.embedding(elements)
        for block in self.encoder:
            z = block(z) if self.apart else block(z, mask)
        return z

    def forward(self, elements: Tensor, mask: Tensor) -> Tensor:
        """Sets (B, n, X) and their mask (B, n), true at elements, to (B, k, O)."""
        z = self.features(elements, mask)
        if self.pma is not None:
            z = self.pma(z, mask)  # (B, k, D)
        elif self.pooling == "max":
            z = z.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)  # (B, D)
        else:
            z = z.masked_fill(~mask.unsqueeze(2), 0).sum(1) / mask.sum(1, keepdim=True)
        return self.output(self.decoder(z)).view(len(elements), self.outputs, -1)
