"""A model whose predictions depend on the whole prefix, so that no bookkeeping error stays hidden."""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from shared.decoding.constraints import Constraints
from shared.decoding.protocol import select_beams, select_sources

BEGIN, PADDING, END, UNKNOWN = 0, 1, 2, 3
CELLS = 1009


@dataclass
class State:
    log_probs: Tensor  # (B, CELLS, V)
    attention: Tensor  # (B, CELLS, S)
    prefix: Tensor  # (B, k) a hash of the prefix


class HashedDecoder(nn.Module):
    """Looks its predictions up in a random table per source, at a hash of the whole prefix."""

    def __init__(self, *, with_attention: bool = True) -> None:
        super().__init__()
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
