"""How a decoder state is compared with the source (Luong et al. 2015, section 3.1, equations 7 and 8).

A score says nothing about where to look; that is an alignment's part (:mod:`shared.attention.alignments`), and any
content-based score goes with any alignment.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width, A key width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from shared.attention.additive import AdditiveAttention


class Score(nn.Module, ABC):
    """score(h_t, h̄_s), up to a constant per query, which no softmax sees.

    Attributes:
        content_based: whether it depends on what stands at a source position, not only on where that is.
    """

    content_based: ClassVar[bool] = True

    @abstractmethod
    def keys(self, annotations: Tensor) -> Tensor:
        """The part of the score that is the same at every step, computed once per source: (B, S, M) to (B, S, A)."""

    @abstractmethod
    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Every query with every key: h (B, Q, N) and (B, S, A) to (B, Q, S)."""

    @torch.no_grad()
    def reset_parameters(self, bound: float = 0.1) -> None:
        """All weights ~ U(-bound, bound), 0.1 in the paper (section 4.1)."""
        for parameter in self.parameters():
            parameter.uniform_(-bound, bound)


class DotScore(Score):
    """h_tᵀ h̄_s: no weights; queries and annotations have one width."""

    def keys(self, annotations: Tensor) -> Tensor:
        """The annotations themselves."""
        return annotations

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.scores`."""
        return queries @ keys.mT


class GeneralScore(Score):
    """h_tᵀ W_a h̄_s.

    Args:
        query_size: N.
        key_size: M.
    """

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.w_a = nn.Parameter(torch.empty(query_size, key_size))
        self.reset_parameters()

    def keys(self, annotations: Tensor) -> Tensor:
        """W_a h̄_s: (B, S, M) to (B, S, N)."""
        return annotations @ self.w_a.t()

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.scores`."""
        return queries @ keys.mT


class ConcatScore(AdditiveAttention, Score):
    """v_aᵀ tanh(W_a [h_t; h̄_s]): additive attention, the halves of W_a being its W_a and U_a."""

    def reset_parameters(self, bound: float = 0.1) -> None:
        """As Luong et al., where additive attention's default is that of Bahdanau et al."""
        Score.reset_parameters(self, bound)


class LocationScore(Score):
    """Row s of W_a h_t, whatever the source says there (equation 8).

    A sentence of S words uses the first S rows; words from the last row on are never attended to (section 3.1,
    "for short sentences, we only use the top part of a_t and for long sentences, we ignore words near the end").

    Args:
        query_size: N.
        positions: S_max, the number of source positions that have weights.
    """

    content_based: ClassVar[bool] = False

    def __init__(self, *, query_size: int, positions: int) -> None:
        super().__init__()
        self.w_a = nn.Parameter(torch.empty(query_size, positions))
        self.reset_parameters()

    def keys(self, annotations: Tensor) -> Tensor:
        """Nothing of the annotations but their number: (B, S, M) to (B, S, 0)."""
        return annotations.detach()[..., :0]

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.scores`; -inf from position S_max on."""
        length, positions = keys.size(-2), self.w_a.size(1)
        scores = queries @ self.w_a[:, :length]
        return nn.functional.pad(scores, (0, max(length - positions, 0)), value=-torch.inf)


def _location(size: int, positions: int | None) -> Score:
    if positions is None:
        raise ValueError("The location score needs `positions`: how many source positions it has weights for.")
    return LocationScore(query_size=size, positions=positions)


SCORES: dict[str, Callable[[int, int | None], Score]] = {
    "dot": lambda size, positions: DotScore(),
    "general": lambda size, positions: GeneralScore(query_size=size, key_size=size),
    "concat": lambda size, positions: ConcatScore(query_size=size, key_size=size, alignment_size=size),
    "location": _location,
}
"""By the paper's names, from the width of states and annotations and the number of positions."""


def build_score(name: str, *, size: int, positions: int | None = None) -> Score:
    """Make one of :data:`SCORES`.

    Args:
        name: dot, general, concat or location.
        size: width n of decoder states, of annotations and of concat's layer.
        positions: S_max; only location has one.

    Raises:
        ValueError: there is no such score, or location is not told ``positions``.
    """
    if name not in SCORES:
        raise ValueError(f"There is no score {name!r}; use one of: {', '.join(SCORES)}.")
    return SCORES[name](size, positions)
