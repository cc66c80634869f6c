"""A model whose predictions depend on the whole prefix, so that no error stays hidden, and a naive beam search."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from shared.decoding.constraints import Constraints, Normalisation, best_first, length_divisor
from shared.decoding.protocol import IncrementalDecoder, StateT, select_beams, select_sources

BEGIN, PADDING, END, UNKNOWN = 0, 1, 2, 3
CELLS = 1009


@dataclass
class State:
    log_probs: Tensor  # (B, CELLS, V)
    attention: Tensor  # (B, CELLS, S)
    prefix: Tensor  # (B, k) a hash of the prefix


class HashedDecoder:
    """Looks its predictions up in a random table per source, at a hash of the whole prefix."""

    def __init__(self, *, with_attention: bool = True) -> None:
        self.with_attention = with_attention
        self.shapes: list[tuple[int, ...]] = []  # of every call of step

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, Tensor | None, State]:
        assert tokens.shape == state.prefix.shape
        self.shapes.append(tuple(tokens.shape))
        prefix = (state.prefix * 31 + tokens + 1) % CELLS
        rows = torch.arange(len(prefix), device=prefix.device).unsqueeze(1)
        weights = state.attention[rows, prefix] if self.with_attention else None
        return state.log_probs[rows, prefix], weights, State(state.log_probs, state.attention, prefix)

    def reorder(self, state: State, sources: Tensor | None, beams: Tensor) -> State:
        assert sources is None or bool((sources.diff() > 0).all())
        return State(
            select_sources(state.log_probs, sources),
            select_sources(state.attention, sources),
            select_beams(state.prefix, sources, beams),
        )


def start(sources: int, vocabulary: int, seed: int, *, end_bias: float = 0.0) -> State:
    """Random sources, each with a table of its own; a positive ``end_bias`` makes hypotheses short."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(sources, CELLS, vocabulary, generator=generator) * 1.5
    logits[..., END] += end_bias
    attention = torch.rand(sources, CELLS, 5, generator=generator)
    return State(logits.log_softmax(-1), attention, torch.zeros(sources, 1, dtype=torch.long))


def pick(state: State, sources: list[int]) -> State:
    return State(state.log_probs[sources], state.attention[sources], state.prefix[sources])


def limits(minimum: list[int], maximum: list[int], forbidden: tuple[int, ...] = ()) -> Constraints:
    return Constraints(BEGIN, END, PADDING, torch.tensor(minimum), torch.tensor(maximum), forbidden)


def finished_sequences(state: State, source: int, constraints: Constraints) -> dict[tuple[int, ...], float]:
    """Every finished hypothesis of one source and its log-probability, by enumeration."""
    words = [w for w in range(state.log_probs.size(2)) if w not in {BEGIN, PADDING, END, *constraints.forbidden}]
    found = {}
    for length in range(int(constraints.minimum[source]), int(constraints.maximum[source])):
        for prefix in itertools.product(words, repeat=length):
            found[(*prefix, END)] = log_probability(state, source, (*prefix, END))
    return found


def log_probability(state: State, source: int, tokens: tuple[int, ...]) -> float:
    cell, total = 0, 0.0
    for previous, symbol in zip((BEGIN, *tokens), tokens, strict=False):
        cell = (cell * 31 + previous + 1) % CELLS
        total += float(state.log_probs[source, cell, symbol])
    return total


def attention_of(state: State, source: int, tokens: tuple[int, ...]) -> list[list[float]]:
    cell, rows = 0, []
    for previous in (BEGIN, *tokens[:-1]):
        cell = (cell * 31 + previous + 1) % CELLS
        rows.append(state.attention[source, cell].tolist())
    return rows


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
    shrink: bool = False,
) -> list[Hypothesis]:
    """The n best hypotheses of a single source; arguments as for :func:`beam_search`, with B = 1."""

    def score(log_prob: float, length: int) -> float:
        return log_prob / float(length_divisor(torch.tensor(length), normalisation, alpha))

    device, maximum, end = constraints.minimum.device, max(1, int(constraints.maximum)), constraints.end
    source = torch.zeros(1, dtype=torch.long, device=device)
    prefixes, finished, room = [Hypothesis()], [], beam
    for length in range(1, maximum + 1):
        symbols = [p.tokens[-1] if p.tokens else constraints.begin for p in prefixes]
        log_probs, weights, state = decoder.step(torch.tensor([symbols], device=device), state)
        log_probs = constraints.restrict(log_probs, source, length - 1)
        totals = torch.tensor([p.log_prob for p in prefixes], device=device)
        values, indices = best_first((totals.unsqueeze(1) + log_probs[0]).view(1, -1), room)
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
                room -= shrink
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
