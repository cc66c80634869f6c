"""The protocol of models of separate sequences, which training, evaluation and sampling rely on.

Shape letters: B sequences, T symbols, P symbols of a prefix, D model width, V symbols of the vocabulary.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class SymbolOutput(Protocol):
    """From states to probabilities of symbols: :class:`shared.layers.categorical.CategoricalOutput` or its like."""

    def __call__(self, h: Tensor, targets: Tensor) -> Tensor:
        """States (…, D) and what is to be predicted from each, int64 (…), to nats (…), float32 or wider."""
        ...

    def log_probs(self, h: Tensor) -> Tensor:
        """States (…, D) to log-probabilities of all symbols that can be predicted (…, up to V)."""
        ...

    def sample(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A symbol drawn for each state: (…, D) to int64 (…)."""
        ...


class SequenceModel(Protocol):
    """Reads whole sequences and gives the states that symbols are predicted from.

    Whether the state of a place has seen what comes after it is decided when the model is built.
    """

    @property
    def origin(self) -> Tensor:
        """() int64, a buffer. It and the number of the update seed the model's own random draws, so a continued run
        draws the same again."""
        ...

    @property
    def output(self) -> SymbolOutput:
        """From states to probabilities."""
        ...

    def __call__(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Symbols (B, T) to states (B, T, D); ``mask`` (B, T) is true at symbols, None without padding."""
        ...

    def at_update(self, number: int) -> None:
        """Called before the training update with this number, from 0; a model may draw its random features anew."""
        ...


class GenerativeModel(SequenceModel, Protocol):
    """A causal model that also writes sequences."""

    @property
    def recurrent(self) -> bool:
        """Whether it has :meth:`step`; where not, every symbol takes the whole prefix."""
        ...

    def initial_state(self, batch: int) -> Any:
        """What is remembered before the first symbol of so many sequences."""
        ...

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One symbol of each sequence (B,) to its state (B, D), and what is remembered after it."""
        ...

    def generate(self, inputs: Tensor, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Prefixes (B, P), the start symbol among them, to the symbols (B, length) that are drawn after them."""
        ...
