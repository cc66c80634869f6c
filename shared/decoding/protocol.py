"""The one protocol between models that predict symbol by symbol and the searches over them.

A model implements ``step`` and ``reorder`` over a state of its own making. How a state begins is the model's
affair, since sources differ (a sentence, an image, a prompt): by custom ``start(...)`` encodes a batch of
sources once and returns a state with k = 1.

Shape letters: B sources, k beams of a source, n hypotheses, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

StateT = TypeVar("StateT")


class IncrementalDecoder(Protocol[StateT]):
    """Predicts the next symbol of B·k prefixes from a state that remembers them.

    The state is opaque to the search. It usually holds two kinds of tensors:

    * per source, (B, …): annotations, keys, masks. The beams of a source share them; they are never repeated.
    * per beam, (B, k, …): hidden states, caches of keys and values, running sums.

    A state is used once: ``step`` and ``reorder`` may write into the one they are given (a preallocated
    cache), and the search goes on with the one they return.
    """

    def step(self, tokens: Tensor, state: StateT) -> tuple[Tensor, Tensor | None, StateT]:
        """Append one symbol to every prefix and predict what follows it.

        Args:
            tokens: (B, k), the begin symbol with k = 1 at the first call; B and k are those of ``state``.
            state: of the prefixes before ``tokens``.

        Returns:
            (B, k, V) log-probabilities of the next symbol, which the search may overwrite;
            (B, k, S) attention weights with which they were predicted, or None if the model has none;
            the state of the longer prefixes.
        """
        ...

    def reorder(self, state: StateT, sources: Tensor | None, beams: Tensor) -> StateT:
        """Select prefixes: row b of the result holds beams ``beams[b]`` of source ``sources[b]``.

        :func:`select_sources` and :func:`select_beams` do this for the two kinds of tensors.

        Args:
            state: of B sources with k beams each.
            sources: (B′,) increasing indices below B of the sources that stay, or None if all do (B′ = B);
                then tensors per source need not be touched.
            beams: (B′, k′) indices below k; a beam may occur several times, and k′ may differ from k.
        """
        ...


def select_sources(per_source: Tensor, sources: Tensor | None) -> Tensor:
    """Keep the given sources: (B, …) to (B′, …); the very same tensor where all stay."""
    return per_source if sources is None else per_source.index_select(0, sources)


def select_beams(per_beam: Tensor, sources: Tensor | None, beams: Tensor) -> Tensor:
    """Keep the given beams of the given sources: (B, k, …) to (B′, k′, …)."""
    rows = torch.arange(len(beams), device=beams.device) if sources is None else sources
    flat = (rows.unsqueeze(1) * per_beam.size(1) + beams).flatten()
    return per_beam.flatten(0, 1).index_select(0, flat).view(*beams.shape, *per_beam.shape[2:])


@dataclass(frozen=True)
class Hypotheses:
    """The n best hypotheses of each source, best first."""

    tokens: Tensor
    """(B, n, T) symbols after the begin symbol, the end symbol included where it came, then padding."""
    lengths: Tensor
    """(B, n) number of symbols, the end symbol included; 0 where fewer than n hypotheses were found."""
    log_probs: Tensor
    """(B, n) float32 sums of the symbols' log-probabilities; -inf where there is no hypothesis."""
    scores: Tensor
    """(B, n) float32 what hypotheses are ranked by: ``log_probs`` after length normalisation."""
    finished: Tensor
    """(B, n) bool, false if the length limit came before the end symbol."""
    attention: Tensor | None
    """(B, n, T, S) weights with which each symbol was predicted, zero in the padding; None if not wanted."""

    def best(self) -> list[list[int]]:
        """The symbols of each source's best hypothesis, without the end symbol."""
        lengths = (self.lengths[:, 0] - self.finished[:, 0].long()).tolist()
        return [row[:length] for row, length in zip(self.tokens[:, 0].tolist(), lengths, strict=True)]
