"""Beam search as in a textbook, one source at a time: the twin :func:`beam_search` is measured against."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, Normalisation, best_first, length_divisor
from shared.decoding.protocol import IncrementalDecoder, StateT


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of one source."""

    tokens: tuple[int, ...] = ()
    log_prob: float = 0.0
    score: float = 0.0
    attention: tuple[Tensor, ...] = ()  # (S,) for each symbol, if the model has any


@torch.no_grad()
def naive_beam_search(
    decoder: IncrementalDecoder[StateT],
    state: StateT,
    constraints: Constraints,
    *,
    beam: int,
    normalisation: Normalisation = "none",
    alpha: float = 0.6,
    n_best: int = 1,
) -> list[Hypothesis]:
    """The n best hypotheses of a single source; arguments as for :func:`beam_search`, with B = 1."""

    def score(log_prob: float, length: int) -> float:
        return log_prob / float(length_divisor(torch.tensor(length), normalisation, alpha))

    device, maximum, end = constraints.minimum.device, max(1, int(constraints.maximum)), constraints.end
    source = torch.zeros(1, dtype=torch.long, device=device)
    prefixes, finished = [Hypothesis()], []
    for length in range(1, maximum + 1):
        symbols = [p.tokens[-1] if p.tokens else constraints.begin for p in prefixes]
        log_probs, weights, state = decoder.step(torch.tensor([symbols], device=device), state)
        log_probs = constraints.restrict(log_probs, source, length - 1)
        totals = torch.tensor([p.log_prob for p in prefixes], device=device)
        values, indices = best_first((totals.unsqueeze(1) + log_probs[0]).view(1, -1), beam)
        extended, parents = [], []
        for log_prob, index in zip(values[0].tolist(), indices[0].tolist(), strict=True):
            parent, symbol = divmod(index, log_probs.size(2))
            if log_prob == -torch.inf:
                continue
            old = prefixes[parent]
            attention = old.attention if weights is None else (*old.attention, weights[0, parent])
            new = Hypothesis((*old.tokens, symbol), log_prob, score(log_prob, length), attention)
            if symbol == end:
                finished.append(new)
            else:
                extended.append(new)
                parents.append(parent)
        finished = sorted(finished, key=lambda h: -h.score)[:n_best]  # stable: the one found first wins
        prefixes = extended
        hope = score(prefixes[0].log_prob, maximum) if prefixes else -torch.inf
        if not prefixes or (len(finished) == n_best and hope <= finished[-1].score):
            break
        state = decoder.reorder(state, None, torch.tensor([parents], device=device))
    return finished or prefixes[:n_best]
