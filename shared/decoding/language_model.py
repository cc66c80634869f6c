"""The protocol of language models of running text, which training, evaluation and text generation rely on."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from shared.attention.memory import Reach


class Memory(Protocol):
    """What a language model carries from segment to segment; the model changes it in place."""

    @property
    def reach(self) -> Reach:
        """How far back it goes."""
        ...

    def clear(self) -> None:
        """Forget everything, as at the beginning of a text."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """What is held, for a checkpoint: tensors (N, B, …) of whatever N there are."""
        ...

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Hold what another memory held."""
        ...


class LanguageModel(Protocol):
    """Reads texts segment by segment and says how probable every next symbol is.

    Shape letters: B columns (texts side by side), T symbols of a segment, V vocabulary. ``memory`` None means that
    nothing before the segment is seen and nothing is kept.
    """

    def memory(self, columns: int, reach: Reach) -> Memory:
        """An empty memory of B texts: in training mode for weights that change, in evaluation mode the quickest."""
        ...

    def __call__(self, inputs: Tensor, targets: Tensor, memory: Any | None = None) -> Tensor:
        """(B, T) inputs and what follows each to (B, T) nats, -log p of every target; then the memory moves on."""
        ...

    def next_log_probs(self, inputs: Tensor, memory: Any | None = None) -> Tensor:
        """Log-probabilities (B, V) of what follows the last of the inputs (B, T); then the memory moves on."""
        ...
