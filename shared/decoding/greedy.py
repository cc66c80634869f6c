"""Greedy search: the most probable symbol at every step.

Shape letters: B sources (B′ of them still searched), S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, best_first
from shared.decoding.protocol import Hypotheses, IncrementalDecoder, StateT


def greedy_search(
    decoder: IncrementalDecoder[StateT], state: StateT, constraints: Constraints, *, attention: bool = False
) -> Hypotheses:
    """Take the most probable symbol until the end symbol comes; sources that have ended leave the batch.

    Args:
        decoder: the model, in evaluation mode.
        state: of B sources with one beam each; it is used up.
        constraints: on all hypotheses.
        attention: whether to collect the attention weights.

    Returns:
        One hypothesis for each source (n = 1). Of equally probable symbols the lower one is taken.

    Raises:
        ReplicationError: the model predicts NaN.
        ValueError: ``attention`` is asked of a model that has none.
    """
    return follow(decoder, state, constraints, lambda log_probs: best_first(log_probs, 1)[1], attention=attention)


@torch.no_grad()
def follow(
    decoder: IncrementalDecoder[StateT],
    state: StateT,
    constraints: Constraints,
    choose: Callable[[Tensor], Tensor],
    *,
    attention: bool = False,
) -> Hypotheses:
    """One hypothesis for each source, symbol by symbol; the rest is as for :func:`greedy_search`.

    Args:
        decoder: as there, and so ``state``, ``constraints`` and ``attention``.
        choose: from log-probabilities (B′, V), -inf where a symbol may not come, to the next symbols (B′, 1).
    """
    batch, device = len(constraints.minimum), constraints.minimum.device
    active = torch.arange(batch, device=device)  # the sources still in the batch
    symbols = torch.full((batch, 1), constraints.begin, device=device)
    log_probs = torch.zeros(batch, 1, device=device)
    lengths = torch.zeros(batch, 1, dtype=torch.long, device=device)
    finished = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    history: list[Tensor] = []
    weights: list[Tensor] = []
    while len(active):
        predicted, alpha, state = decoder.step(symbols, state)
        predicted = constraints.restrict(predicted, active, len(history)).squeeze(1)  # (B′, V)
        symbols = choose(predicted)
        history.append(spread(symbols, active, batch, fill=constraints.padding))
        if attention:
            weights.append(spread(required(alpha), active, batch, fill=0))
        log_probs[active] += predicted.gather(1, symbols)
        lengths[active] += 1
        finished[active] = symbols == constraints.end
        stay = (~finished[active, 0] & (len(history) < constraints.maximum[active])).nonzero()[:, 0]
        if 0 < len(stay) < len(active):
            state = decoder.reorder(state, stay, torch.zeros_like(symbols[stay]))
        active, symbols = active[stay], symbols[stay]
    tokens = torch.stack(history, dim=2)  # (B, 1, T)
    collected = torch.stack(weights, dim=2) if attention else None  # (B, 1, T, S)
    return Hypotheses(tokens, lengths, log_probs, log_probs, finished, collected)


def spread(rows: Tensor, sources: Tensor, batch: int, *, fill: int) -> Tensor:
    """Put the rows (B′, …) of the sources still searched where they stand among all: (B, …)."""
    if len(sources) == batch:
        return rows
    return rows.new_full((batch, *rows.shape[1:]), fill).index_copy_(0, sources, rows)


def required(weights: Tensor | None) -> Tensor:
    """The weights themselves.

    Raises:
        ValueError: there are none.
    """
    if weights is None:
        raise ValueError("attention=True, but this decoder returns no attention weights")
    return weights
