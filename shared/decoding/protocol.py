"""What models that predict symbol by symbol have in common, for training, evaluation and searching.

An :class:`IncrementalDecoder` says something of a source, a :class:`LanguageModel` reads running text segment by
segment, and a :class:`SequenceModel` reads whole sequences.

Shape letters: B sources, texts or sequences, k beams of a source, n hypotheses, S source length, T target length or
symbols, D model width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

StateT = TypeVar("StateT")


class IncrementalDecoder(Protocol[StateT]):
    """Predicts the next symbol of B·k prefixes from a state that remembers them.

    How a state begins is the model's affair, since sources differ (a sentence, an image): by custom ``start(...)``
    encodes a batch of sources once and returns a state with k = 1.

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


class Reach(NamedTuple):
    """How far back a language model sees.

    Attributes:
        memory: M, the number of symbols before a segment that attention sees. A recurrent network has no such limit:
            it keeps its state between segments unless M is 0.
        same_length: whether every query sees exactly M keys, itself included, as soon as there are M. Otherwise the
            last query of a segment of T symbols sees M + T keys.
        clamp: the largest distance that is told apart; greater ones count as this one (``clamp_len`` of the released
            code). None: all are told apart.
    """

    memory: int
    same_length: bool = False
    clamp: int | None = None


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

    ``memory`` None means that nothing before the segment is seen and nothing is kept.
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


class SymbolOutput(Protocol):
    """From states to probabilities of symbols: :class:`shared.layers.outputs.CategoricalOutput` or its like."""

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
