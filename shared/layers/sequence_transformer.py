"""A Transformer over symbols, causal or not, around any self-attention, so that a paper implements its attention only.

Shape letters: B sequences, T symbols, D model width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from shared.layers.categorical import CategoricalOutput
from shared.layers.mixture_of_logistics import MixtureOfLogistics
from shared.layers.positions import GridPositions, SinusoidalPositions

Output = CategoricalOutput | MixtureOfLogistics
"""From states to the probabilities of symbols."""
Norm = Literal["pre", "post"]
"""Where a layer normalises: what goes into a sub-layer, x + f(LN(x)), or the sum, LN(x + f(x))."""


class SelfAttention(nn.Module, ABC):
    """Attention of a sequence to itself, with all its heads and projections.

    Attributes:
        recurrent: whether it has :meth:`begin` and :meth:`step`, one position after the other from a state.
    """

    recurrent: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D); ``mask`` (B, T) is true at symbols, None without padding."""

    def begin(self, like: Tensor, length: int) -> Any:
        """The state before the first position of sequences of at most ``length``; ``like`` is (B, D).

        Raises:
            NotImplementedError: the attention has no recurrent form.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form; compute the whole prefix")

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next position (B, D), causal, and the state after it; raises as :meth:`begin` does."""
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form; compute the whole prefix")

    def redraw(self, generator: torch.Generator) -> None:
        """Draw anew what is random, if anything is."""


class Layer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and a norm.

    Args:
        attention: with its heads.
        width: D.
        hidden_size: of the feed-forward network, two products with ReLU between them.
        dropout: after attention and after both products.
        norm: see :data:`Norm`.
    """

    def __init__(
        self, *, attention: SelfAttention, width: int, hidden_size: int, dropout: float, norm: Norm
    ) -> None:  # fmt: skip
        super().__init__()
        self.attention, self.pre = attention, norm == "pre"
        self.feed_forward = nn.Sequential(
            nn.Linear(width, hidden_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, width)
        )
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self._after(self.attention(self.attention_norm(x) if self.pre else x, mask, causal), x)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next position (B, D), and attention's state after it."""
        a, state = self.attention.step(self.attention_norm(x) if self.pre else x, state)
        return self._after(a, x), state

    def _after(self, a: Tensor, x: Tensor) -> Tensor:
        """What attention gives (…, D), and the layer's input, to the layer's output."""
        if self.pre:
            x = x + self.dropout(a)
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))  # type: ignore[no-any-return]
        x = self.attention_norm(x + self.dropout(a))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))  # type: ignore[no-any-return]


class RecurrentState(NamedTuple):
    """What a model remembers of the symbols so far: how many they are, and each layer's state."""

    place: int
    layers: tuple[Any, ...]


class SequenceTransformer(nn.Module):
    """Symbols to the states that predict each the next one (causal), or a hidden one from all others.

    It is a :class:`shared.decoding.sequence_model.GenerativeModel`.

    Args:
        symbols: of the vocabulary.
        width: D.
        hidden_size: of the feed-forward networks.
        attentions: makes the self-attention of each layer.
        layers: how many.
        output: makes the output layer; it is called last, after all other layers have drawn their weights.
        causal: whether position i sees those up to i only.
        norm: see :data:`Norm`.
        final_norm: whether the last layer's output is normalised.
        length: symbols of the longest sequence, which a recurrent attention may need room for.
        concatenated: whether embedding and sinusoids have half of the width each, or all of it, and are added.
        columns: pixels of a row, where sequences are pictures and positions are rows and columns.
        dropout: on attention and feed-forward networks.
        embedding_dropout: on embeddings with their positions.
    """

    origin: Tensor

    def __init__(
        self, *, symbols: int, width: int, hidden_size: int, attentions: Callable[[], SelfAttention], layers: int,
        output: Callable[[], Output], causal: bool, norm: Norm, final_norm: bool = True, length: int = 0,
        concatenated: bool = False, columns: int | None = None, dropout: float = 0.0, embedding_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.causal, self.length, self.concatenated = width, causal, length, concatenated
        self.embedding = nn.Embedding(symbols, width // 2 if concatenated else width)
        size = self.embedding.embedding_dim
        self.positions: nn.Module = (
            GridPositions(width=size, columns=columns) if columns else SinusoidalPositions(width=size)
        )
        self.layers = nn.ModuleList(
            Layer(attention=attentions(), width=width, hidden_size=hidden_size, dropout=dropout, norm=norm)
            for _ in range(layers)
        )
        self.norm: nn.Module = nn.LayerNorm(width) if final_norm else nn.Identity()
        self.dropout = nn.Dropout(embedding_dropout) if embedding_dropout else nn.Identity()
        self.output: Output = output()
        self.register_buffer("origin", torch.randint(2**31, ()))

    @property
    def attentions(self) -> Sequence[Any]:
        """Those of all layers, the lowest first."""
        return [layer.attention for layer in self._layers]

    @property
    def recurrent(self) -> bool:
        """Whether there is :meth:`step`."""
        return self.causal and all(attention.recurrent for attention in self.attentions)

    @property
    def _layers(self) -> Sequence[Layer]:
        return tuple(self.layers)  # type: ignore[arg-type]

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Symbols (B, T) to states (B, T, D); ``mask`` (B, T) is true at symbols, None without padding."""
        x = self._embedded(inputs, 0)
        for layer in self._layers:
            x = layer(x, mask, self.causal)
        h: Tensor = self.norm(x)
        return h

    def initial_state(self, batch: int) -> RecurrentState:
        """Before the first symbol of so many sequences."""
        like = self.embedding.weight.new_empty(batch, self.width)
        return RecurrentState(0, tuple(attention.begin(like, self.length) for attention in self.attentions))

    def step(self, symbols: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One symbol of each sequence (B,) to its state (B, D), and what is remembered after it."""
        x = self._embedded(symbols.unsqueeze(1), state.place).squeeze(1)
        layers = []
        for layer, before in zip(self._layers, state.layers, strict=True):
            x, after = layer.step(x, before)
            layers.append(after)
        return self.norm(x), RecurrentState(state.place + 1, tuple(layers))

    @torch.inference_mode()
    def generate(self, inputs: Tensor, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw what follows: symbols (B, P), the start symbol among them, to (B, length).

        One step per symbol where there is a recurrent form, the whole prefix anew where there is none.
        """
        if not self.recurrent:
            read = inputs
            for _ in range(length):
                read = torch.cat((read, self.output.sample(self(read)[:, -1], generator).unsqueeze(1)), dim=1)
            return read[:, inputs.size(1) :]
        state, drawn = self.initial_state(len(inputs)), []
        for symbols in inputs.unbind(1):
            h, state = self.step(symbols, state)
        for _ in range(length - 1):
            drawn.append(self.output.sample(h, generator))
            h, state = self.step(drawn[-1], state)
        return torch.stack([*drawn, self.output.sample(h, generator)], dim=1)

    def at_update(self, number: int) -> None:
        """Before every update of training: what is random is drawn anew, the same again if training is resumed."""
        generator = self.generator_of(number)
        for attention in self.attentions:
            attention.redraw(generator)

    def generator_of(self, number: int) -> torch.Generator:
        """The generator of the random numbers that the model draws before the update with this number."""
        return torch.Generator(self.origin.device).manual_seed(int(self.origin) + number)

    def _embedded(self, symbols: Tensor, start: int) -> Tensor:
        """(B, T), the first of them at the place ``start``, to (B, T, D)."""
        x = self.embedding(symbols)
        p = self.positions(start, start + symbols.size(1))
        x = torch.cat((x, p.expand_as(x)), dim=-1) if self.concatenated else x + p
        embedded: Tensor = self.dropout(x)
        return embedded
