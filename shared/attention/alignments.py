"""What a decoder state is compared with, and where it looks (Luong et al. 2015, sections 3.1 and 3.2).

A score compares a state with an annotation, and an alignment says which annotations it may look at: the whole source or
a window of it. Any score based on content goes with any alignment. Positions are those of the source as it is written:
a model that reads its source backwards puts the annotations back in order first.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width, A key width, W = 2D + 1 window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from shared.attention.additive import AdditiveAttention
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as


class Score(nn.Module, ABC):
    """score(h_t, h̄_s), up to a constant per query, which no softmax sees."""

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

    It goes with global alignment only: its weights belong to the positions of a whole source.

    Args:
        query_size: N.
        positions: S_max, the number of source positions that have weights.
    """

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


def build_score(name: str, *, size: int, positions: int | None = None) -> Score:
    """Make a score by the paper's name.

    Args:
        name: dot, general, concat or location.
        size: width of decoder states, of annotations and of concat's layer.
        positions: S_max; only location has one.
    """
    match name:
        case "dot":
            return DotScore()
        case "general":
            return GeneralScore(query_size=size, key_size=size)
        case "concat":
            return ConcatScore(query_size=size, key_size=size, alignment_size=size)
    assert positions is not None
    return LocationScore(query_size=size, positions=positions)


def attend_in_window(
    score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, p: Tensor, window: int,
    sigma: float | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The twin of :func:`attend_locally`: only the W keys and annotations of a window are read, whatever S is."""
    (batch, count), size = queries.shape[:2], keys.size(1)
    if size == 0:
        return annotations.new_zeros(batch, count, annotations.size(2)), keys.new_zeros(batch, count, 0)
    offsets = torch.arange(-window, window + 1, device=keys.device)
    word = p.detach().floor().clamp(min=1)
    index = (word.long() - 1).unsqueeze(2) + offsets  # (B, Q, W) from 0
    inside = (index >= 0) & (index < mask.sum(1).view(-1, 1, 1))
    index = index.clamp(0, size - 1)  # what is outside may read any word: its weight is zero
    rows = index + size * torch.arange(batch, device=index.device).view(-1, 1, 1)  # in (B·S, …)
    near_keys = _take(keys, rows)  # (B·Q, W, A)
    scores = score.scores(queries.reshape(batch * count, 1, -1), near_keys)  # (B·Q, 1, W)
    near = masked_softmax(scores.view(index.shape), inside)  # (B, Q, W)
    if sigma is not None:
        distance = (word - p).unsqueeze(2) + offsets  # s - p_t
        near = near * torch.exp(-distance.square() / (2 * sigma**2))
    near_annotations = near_keys if keys is annotations else _take(annotations, rows)  # (B·Q, W, M)
    contexts = (near.view(batch * count, 1, -1) @ near_annotations).view(batch, count, -1)
    return contexts, near.new_zeros(batch, count, size).scatter_add(2, index, near)


def _take(source: Tensor, rows: Tensor) -> Tensor:
    """Rows of (B, S, M) by their index (B, Q, W) in (B·S, M): (B·Q, W, M)."""
    return source.flatten(0, 1).index_select(0, rows.flatten()).view(-1, rows.size(2), source.size(2))


@runs_as(attend_in_window)
def attend_locally(
    score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, p: Tensor, window: int,
    sigma: float | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """a_t(s) = align(h_t, h̄_s) · exp(-(s - p_t)² / 2σ²) within [p_t - D, p_t + D] (section 3.2, equation 10).

    The window is centred on the word ⌊p_t⌋, at least the first. The weights are not renormalised after the Gaussian, so
    that they sum to less than one; it alone lets a gradient reach p_t.

    Args:
        score: compares a query with a key.
        queries: (B, Q, N).
        keys: (B, S, A).
        annotations: (B, S, M).
        mask: (B, S) bool.
        p: (B, Q) p_t, in words from 1.
        window: D.
        sigma: σ; None for no Gaussian.

    Returns:
        Contexts (B, Q, M) and weights (B, Q, S), as :meth:`Alignment.forward` has them.
    """
    s = torch.arange(1, keys.size(1) + 1, device=keys.device)
    near = (s - p.detach().floor().clamp(min=1).unsqueeze(2)).abs() <= window  # (B, Q, S)
    a = masked_softmax(score.scores(queries, keys), mask.unsqueeze(1) & near)
    if sigma is not None:
        a = a * torch.exp(-((s - p.unsqueeze(2)) ** 2) / (2 * sigma**2))
    return a @ annotations, a


class Alignment(nn.Module, ABC):
    """From scores to the weights a_t and the context c_t = Σ_s a_t(s) h̄_s."""

    @abstractmethod
    def forward(
        self, score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            score: compares a query with a key.
            queries: (B, Q, N) decoder states h_t: of several target words, or of the beams at one.
            keys: (B, S, A), ``score.keys(annotations)``.
            annotations: (B, S, M) h̄_s.
            mask: (B, S) bool, true at words, which come before all padding.
            positions: the queries' target positions t from 0 on, broadcastable to (B, Q).

        Returns:
            Contexts (B, Q, M) and weights (B, Q, S), zero outside of the window and everywhere for a source
            without words.
        """


class GlobalAlignment(Alignment):
    """a_t = softmax over all words of the source (equation 7)."""

    def forward(
        self, score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`Alignment.forward`; the target positions do not matter."""
        weights = masked_softmax(score.scores(queries, keys), mask.unsqueeze(1))
        return weights @ annotations, weights


class LocalMonotonic(Alignment):
    """local-m: p_t = t; past the end of the source the window stays at the last word.

    Args:
        window: D, 10 in the paper.
    """

    def __init__(self, *, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(
        self, score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`Alignment.forward`."""
        p = torch.minimum(positions + 1, mask.sum(1, keepdim=True).clamp(min=1)).expand(queries.shape[:2])
        return attend_locally(score, queries, keys, annotations, mask, p, self.window, None)


class LocalPredictive(Alignment):
    """local-p: p_t = S·σ(v_pᵀ tanh(W_p h_t)) (equation 9), and a Gaussian around it with σ = D/2.

    Equation 9 says that p_t lies in [0, S], and the authors' code (``attnLayerForward.m``) has the first word at 0.

    Args:
        window: D.
        size: N.
        first_word: what its p_t is. With 1 the window is never centred on the last word.
    """

    def __init__(self, *, window: int, size: int, first_word: int = 0) -> None:
        super().__init__()
        self.window, self.first_word = window, first_word
        self.w_p = nn.Parameter(torch.empty(size, size))
        self.v_p = nn.Parameter(torch.empty(size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, bound: float = 0.1) -> None:
        """W_p, v_p ~ U(-bound, bound), 0.1 in the paper (section 4.1)."""
        for parameter in (self.w_p, self.v_p):
            parameter.uniform_(-bound, bound)

    def forward(
        self, score: Score, queries: Tensor, keys: Tensor, annotations: Tensor, mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`Alignment.forward`; the target positions do not matter."""
        hidden = 2 * torch.sigmoid(2 * (queries @ self.w_p)) - 1  # tanh, faster so on a CPU
        logits = (hidden @ self.v_p).to(self.v_p)  # a position needs full precision under autocast, too
        p = mask.sum(1, keepdim=True) * torch.sigmoid(logits)  # (B, Q)
        p = p + (1 - self.first_word)  # in words from 1
        return attend_locally(score, queries, keys, annotations, mask, p, self.window, self.window / 2)
