"""Beam search over a batch of sources, with no loop over hypotheses.

Shape letters: B sources (B′ of them still searched), k beams of a source, n best hypotheses, S source length,
T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, Normalisation, best_first, length_divisor
from shared.decoding.protocol import Hypotheses, IncrementalDecoder, StateT
from shared.decoding.sampling import required, spread


@torch.no_grad()
def beam_search(
    decoder: IncrementalDecoder[StateT],
    state: StateT,
    constraints: Constraints,
    *,
    beam: int,
    normalisation: Normalisation = "none",
    alpha: float = 0.6,
    n_best: int = 1,
    attention: bool = False,
) -> Hypotheses:
    """Extend the k most probable prefixes by every symbol, keep the k most probable results, and so on.

    Results that end leave the beam, and so do prefixes that can no longer become better than the n-th best
    finished hypothesis; this changes no result, as log-probabilities only fall and their divisors never do. A
    source without prefixes leaves the batch. With one beam this is greedy search.

    Args:
        decoder: the model, in evaluation mode.
        state: of B sources with one beam each; it is used up.
        constraints: on all hypotheses.
        beam: k.
        normalisation: how finished hypotheses are ranked, see :func:`length_divisor`; prefixes, all equally
            long, are ranked by log-probability.
        alpha: exponent of the normalisation ``gnmt``.
        n_best: n, how many hypotheses to return.
        attention: whether to collect the attention weights.

    Returns:
        The n best finished hypotheses, or the best unfinished ones of a source where none finished. Of equals
        the one found first wins, then that of the better prefix, then that of the lower symbol.

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``beam``, ``n_best``, ``normalisation`` or ``alpha`` is out of range, or ``attention`` is
            asked of a model that has none.
    """
    if min(beam, n_best) < 1:
        raise ValueError(f"beam ({beam}) and n_best ({n_best}) must be at least 1")
    divisor = partial(length_divisor, normalisation=normalisation, alpha=alpha)
    kept = _Kept(constraints, n_best, divisor)
    trellis = _Trellis(len(constraints.minimum), attention)
    _search(decoder, state, constraints, beam, kept, trellis)
    return trellis.trace(kept, constraints)


def _search(
    decoder: IncrementalDecoder[StateT],
    state: StateT,
    constraints: Constraints,
    beam: int,
    kept: _Kept,
    trellis: _Trellis,
) -> None:
    batch, device = len(constraints.minimum), constraints.minimum.device
    active = torch.arange(batch, device=device)  # the sources still in the batch
    symbols = torch.full((batch, 1), constraints.begin, device=device)
    totals = torch.zeros(batch, 1, device=device)  # log-probabilities of the prefixes
    length = 0
    while True:
        log_probs, weights, state = decoder.step(symbols, state)
        log_probs = constraints.restrict(log_probs, active, length).add_(totals.unsqueeze(2))
        length += 1
        totals, parents, symbols = _extend(log_probs, beam, constraints.end)  # (B′, k) each
        trellis.append(active, parents, symbols, weights)

        ended = symbols == constraints.end
        kept.offer(active, length, totals.masked_fill(~ended, -torch.inf))
        totals = totals.masked_fill(ended | kept.are_hopeless(active, totals), -torch.inf)
        last = length >= constraints.maximum[active]
        empty = last & kept.is_empty(active)
        if empty.any():
            kept.offer(active[empty], length, totals[empty])

        stay = (~last & (totals[:, 0] > -torch.inf)).nonzero()[:, 0]
        if not len(stay):
            return
        width = int((totals[stay] > -torch.inf).sum(1).max())
        state = decoder.reorder(state, None if len(stay) == len(active) else stay, parents[stay, :width])
        active, symbols, totals = active[stay], symbols[stay, :width], totals[stay, :width]


def _extend(log_probs: Tensor, beam: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best extensions of each source's prefixes; those that end or are impossible stand at the back.

    Args:
        log_probs: (B′, k, V) of the extended prefixes.
        beam: k, how many extensions to take.
        end: the end symbol.

    Returns:
        Log-probabilities, parent prefixes and symbols, each (B′, k′).
    """
    totals, chosen = best_first(log_probs.flatten(1), beam)
    symbols = chosen % log_probs.size(2)
    order = totals.masked_fill(symbols == end, -torch.inf).sort(dim=1, descending=True, stable=True).indices
    parents = chosen // log_probs.size(2)
    return totals.gather(1, order), parents.gather(1, order), symbols.gather(1, order)


class _Kept:
    """The n best hypotheses of every source so far, as where they end in the trellis."""

    def __init__(self, constraints: Constraints, n_best: int, divisor: Callable[[Tensor], Tensor]) -> None:
        shape, device = (len(constraints.minimum), n_best), constraints.minimum.device
        self.divisor = divisor
        self.ceiling = divisor(constraints.maximum)  # (B,)
        self.scores = torch.full(shape, -torch.inf, device=device)
        self.log_probs = torch.full(shape, -torch.inf, device=device)
        self.lengths = torch.zeros(shape, dtype=torch.long, device=device)
        self.slots = torch.zeros(shape, dtype=torch.long, device=device)

    def offer(self, sources: Tensor, length: int, log_probs: Tensor) -> None:
        """Consider hypotheses (B′, k) of this length; -inf where there is none."""
        slots = torch.arange(log_probs.size(1), device=log_probs.device).expand_as(log_probs)
        lengths = torch.full_like(slots, length)
        scores = torch.cat((self.scores[sources], log_probs / self.divisor(lengths)), dim=1)
        self.scores[sources], best = best_first(scores, self.scores.size(1))
        for table, new in ((self.log_probs, log_probs), (self.lengths, lengths), (self.slots, slots)):
            table[sources] = torch.cat((table[sources], new), dim=1).gather(1, best)

    def is_empty(self, sources: Tensor) -> Tensor:
        """(B′,) bool, true where there is no hypothesis yet."""
        return self.scores[sources, 0] == -torch.inf

    def are_hopeless(self, sources: Tensor, log_probs: Tensor) -> Tensor:
        """True for prefixes (B′, k) none of whose extensions could still be kept.

        The bound assumes that all further symbols have probability one and that the prefix reaches its maximum length.
        """
        return log_probs / self.ceiling[sources].unsqueeze(1) <= self.scores[sources, -1:]


class _Trellis:
    """All prefixes ever kept, each as its last symbol and the place of its parent."""

    def __init__(self, batch: int, keep_attention: bool) -> None:
        self.batch = batch
        self.keep_attention = keep_attention
        self.parents: list[Tensor] = []  # at each step (B, k)
        self.symbols: list[Tensor] = []
        self.weights: list[Tensor] = []  # (B, k of the step before, S)

    def append(self, sources: Tensor, parents: Tensor, symbols: Tensor, weights: Tensor | None) -> None:
        self.parents.append(spread(parents, sources, self.batch, fill=0))
        self.symbols.append(spread(symbols, sources, self.batch, fill=0))
        if self.keep_attention:
            self.weights.append(spread(required(weights), sources, self.batch, fill=0))

    def trace(self, kept: _Kept, constraints: Constraints) -> Hypotheses:
        """Follow the kept hypotheses back to their beginnings."""
        lengths = kept.lengths.masked_fill(kept.scores == -torch.inf, 0)  # (B, n)
        every_source = torch.arange(self.batch, device=lengths.device).unsqueeze(1)
        slots, tokens, attention = kept.slots, [], []
        for step in reversed(range(max(1, int(lengths.max())))):
            within = lengths > step  # (B, n)
            slots = slots.where(lengths > step + 1, kept.slots)  # a hypothesis enters at its last symbol
            here = slots.where(within, 0)
            tokens.append(self.symbols[step].gather(1, here).where(within, constraints.padding))
            slots = self.parents[step].gather(1, here)
            if self.keep_attention:
                attention.append(self.weights[step][every_source, slots] * within.unsqueeze(2))
        sequence = torch.stack(tokens[::-1], dim=2)  # (B, n, T)
        ends = sequence.gather(2, (lengths - 1).clamp(min=0).unsqueeze(2)).squeeze(2) == constraints.end
        return Hypotheses(
            tokens=sequence,
            lengths=lengths,
            log_probs=kept.log_probs,
            scores=kept.scores,
            finished=ends & (lengths > 0),
            attention=torch.stack(attention[::-1], dim=2) if self.keep_attention else None,
        )
