"""Where a decoder state looks: at the whole source or at a window of it (Luong et al. 2015, sections 3.1, 3.2).

What it looks for is the score's part (:mod:`shared.attention.scores`). Positions are those of the source as it is
written: a model that reads its source backwards puts the annotations back in order first.

Shape letters: B batch, S source length, Q queries, N query width, M annotation width, A key width, W = 2D + 1 window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from shared.attention.scores import Score
from shared.attention.softmax import masked_softmax


class Alignment(nn.Module, ABC):
    """From scores to the weights a_t and the context c_t = Σ_s a_t(s) h̄_s."""

    @abstractmethod
    def forward(
        self,
        score: Score,
        queries: Tensor,
        keys: Tensor,
        annotations: Tensor,
        mask: Tensor,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            score: compares a query with a key.
            queries: (B, Q, N) decoder states h_t: of several target words, or of the beams at one.
            keys: (B, S, A), ``score.keys(annotations)``.
            annotations: (B, S, M) h̄_s.
            mask: (B, S) bool, true at words, which come before all padding.
            positions: the queries' target positions t from 0 on, broadcastable to (B, Q); 0, 1, … if not given.

        Returns:
            Contexts (B, Q, M) and weights (B, Q, S), zero outside of the window and everywhere for a source
            without words.
        """


class GlobalAlignment(Alignment):
    """a_t = softmax over all words of the source (equation 7)."""

    def forward(
        self,
        score: Score,
        queries: Tensor,
        keys: Tensor,
        annotations: Tensor,
        mask: Tensor,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`Alignment.forward`; the target positions do not matter."""
        weights = masked_softmax(score.scores(queries, keys), mask.unsqueeze(1))
        return weights @ annotations, weights


class LocalAlignment(Alignment):
    """a_t = softmax over the words of [p_t - D, p_t + D] (section 3.2); its kinds differ in how they choose p_t.

    Only the W keys and annotations of a window are read and multiplied, so the cost does not grow with S.

    Args:
        window: D, 10 in the paper, at least 1.

    Raises:
        ValueError: the window is smaller.
    """

    offsets: Tensor

    def __init__(self, *, window: int) -> None:
        super().__init__()
        if window < 1:
            raise ValueError(f"A local alignment needs a window D of at least 1, not {window}.")
        self.window = window
        self.register_buffer("offsets", torch.arange(-window, window + 1), persistent=False)

    @abstractmethod
    def centre(self, queries: Tensor, lengths: Tensor, positions: Tensor) -> tuple[Tensor, Tensor | None]:
        """Choose p_t.

        Args:
            queries: (B, Q, N).
            lengths: (B, 1) number of words of each source.
            positions: target positions, broadcastable to (B, Q).

        Returns:
            (B, Q) index from 0 of the word the window is centred on; and (B, Q, W) factors of the weights in
            the window, or None for all ones.
        """

    def forward(
        self,
        score: Score,
        queries: Tensor,
        keys: Tensor,
        annotations: Tensor,
        mask: Tensor,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`Alignment.forward`.

        Raises:
            ValueError: the score is not based on content; its weights belong to the positions of a whole source.
        """
        if not score.content_based:
            raise ValueError(f"{type(score).__name__} knows no window; use it with the global alignment.")
        (batch, count), size = queries.shape[:2], keys.size(1)
        if size == 0:
            return annotations.new_zeros(batch, count, annotations.size(2)), keys.new_zeros(batch, count, 0)
        lengths = mask.sum(1, keepdim=True)  # (B, 1)
        if positions is None:
            positions = torch.arange(count, device=queries.device)
        centre, factors = self.centre(queries, lengths, positions)
        index = centre.unsqueeze(2) + self.offsets  # (B, Q, W)
        inside = (index >= 0) & (index < lengths.unsqueeze(2))
        index = index.clamp(0, size - 1)  # what is outside may read any word: its weight is zero
        rows = index + size * torch.arange(batch, device=index.device).view(-1, 1, 1)  # in (B·S, …)
        near_keys = _take(keys, rows)  # (B·Q, W, A)
        scores = score.scores(queries.reshape(batch * count, 1, -1), near_keys)  # (B·Q, 1, W)
        near = masked_softmax(scores.view(index.shape), inside)  # (B, Q, W)
        if factors is not None:
            near = near * factors
        near_annotations = near_keys if keys is annotations else _take(annotations, rows)  # (B·Q, W, M)
        contexts = (near.view(batch * count, 1, -1) @ near_annotations).view(batch, count, -1)
        return contexts, near.new_zeros(batch, count, size).scatter_add(2, index, near)


class LocalMonotonic(LocalAlignment):
    """local-m: p_t = t; past the end of the source the window stays at the last word."""

    def centre(self, queries: Tensor, lengths: Tensor, positions: Tensor) -> tuple[Tensor, Tensor | None]:
        """See :meth:`LocalAlignment.centre`."""
        return torch.minimum(positions, (lengths - 1).clamp(min=0)).expand(queries.shape[:2]), None


class LocalPredictive(LocalAlignment):
    """local-p: p_t = S·σ(v_pᵀ tanh(W_p h_t)), a_t(s) = align(h_t, h̄_s)·exp(-(s - p_t)²/2σ²), σ = D/2 (eqs. 9, 10).

    S and s count words from 1, and the window is centred on the word ⌊p_t⌋, at least the first. The weights are not
    renormalised after the Gaussian, so that they sum to less than one; it alone lets a gradient reach p_t.

    Args:
        window: D.
        size: N.
        gaussian: whether the weights get the factor; without it p_t is not learned.
    """

    def __init__(self, *, window: int, size: int, gaussian: bool = True) -> None:
        super().__init__(window=window)
        self.sigma = window / 2
        self.gaussian = gaussian
        self.w_p = nn.Parameter(torch.empty(size, size))
        self.v_p = nn.Parameter(torch.empty(size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, bound: float = 0.1) -> None:
        """W_p, v_p ~ U(-bound, bound), 0.1 in the paper (section 4.1)."""
        for parameter in (self.w_p, self.v_p):
            parameter.uniform_(-bound, bound)

    def centre(self, queries: Tensor, lengths: Tensor, positions: Tensor) -> tuple[Tensor, Tensor | None]:
        """See :meth:`LocalAlignment.centre`; the target positions do not matter."""
        hidden = 2 * torch.sigmoid(2 * (queries @ self.w_p)) - 1  # tanh, faster so on a CPU
        logits = (hidden @ self.v_p).to(self.v_p)  # a position needs full precision under autocast, too
        p = lengths * torch.sigmoid(logits)  # (B, Q), in words from 1
        word = p.detach().floor().clamp(min=1)
        if not self.gaussian:
            return word.long() - 1, None
        distance = (word - p).unsqueeze(2) + self.offsets  # s - p_t, (B, Q, W)
        return word.long() - 1, torch.exp(-distance.square() / (2 * self.sigma**2))


def _take(source: Tensor, rows: Tensor) -> Tensor:
    """Rows of (B, S, M) by their index (B, Q, W) in (B·S, M): (B·Q, W, M)."""
    return source.flatten(0, 1).index_select(0, rows.flatten()).view(-1, rows.size(2), source.size(2))
