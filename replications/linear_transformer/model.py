"""Transformers are RNNs: autoregressive Transformers with linear attention (Katharopoulos et al., ICML 2020).

The whole model, and with other attention the two that the paper compares it with. Attention itself stands in
``shared/attention``: linear attention in ``linear.py`` (sections 3.2 and 3.3), elu(x) + 1 in ``feature_maps.py``
(section 3.2.1), attention by hashing in ``lsh.py`` (Reformer). Sections and equations are those of arXiv 2006.16236v3;
what the paper leaves open, such as ReLU and where the norms stand, is as in its authors' library and programs.

Shape letters: B sequences, T symbols, D model width, H heads, K width of a head's keys and values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from shared.attention.feature_maps import EluPlusOne
from shared.attention.linear import State
from shared.attention.linear_multi_head import LinearMultiHeadAttention
from shared.attention.lsh import LSHSelfAttention
from shared.attention.multi_head import MultiHeadAttention
from shared.layers.categorical import CategoricalOutput
from shared.layers.mixture_of_logistics import MixtureOfLogistics
from shared.layers.positions import SinusoidalPositions

Output = CategoricalOutput | MixtureOfLogistics


class SelfAttention(nn.Module, ABC):
    """A_l of equation (1) with all its heads.

    Attributes:
        recurrent: whether one position after the other can be computed from a state.
    """

    recurrent: ClassVar[bool] = True

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D); ``mask`` (B, T) is true at what is no padding."""

    @abstractmethod
    def begin(self, like: Tensor, length: int) -> Any:
        """The state before the first position of sequences of at most so many; ``like`` is (B, D)."""

    @abstractmethod
    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next position (B, D), causal, and the state after it."""

    def redraw(self, generator: torch.Generator) -> None:
        """Draw anew what is random, if anything is."""


class LinearAttention(SelfAttention):
    """φ(Q)(φ(K)ᵀV) over its normaliser (equations 5 and 9) with φ(x) = elu(x) + 1 (equation 7)."""

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = LinearMultiHeadAttention(
            query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, features=EluPlusOne(),
            bias=True,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`."""
        out: Tensor = self.heads(x, self.heads.project(x, mask), causal=causal)[0]
        return out

    def begin(self, like: Tensor, length: int) -> State | None:
        """s_0 = 0 and z_0 = 0 (equations 16 and 17)."""
        return None

    def step(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Equations (18) to (20)."""
        return self.heads.step(x, state)


class KeysValuesSoFar(NamedTuple):
    """What softmax attention has to remember: it grows, and every position reads all of it.

    Attributes:
        keys: (B, H, length, K), of which the first ``used`` are there.
        values: likewise.
        used: positions so far.
    """

    keys: Tensor
    values: Tensor
    used: int


class SoftmaxAttention(SelfAttention):
    """Equation (2); step by step it is the paper's "stateful softmax" (supplementary material C.1)."""

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = MultiHeadAttention(
            query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, bias=True
        )

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`. Padding is at the end, where no causal query looks at it but padding's own."""
        seen = None if mask is None or causal else mask[:, None, None]
        out: Tensor = self.heads(x, self.heads.project(x), mask=seen, causal=causal)[0]
        return out

    def begin(self, like: Tensor, length: int) -> KeysValuesSoFar:
        """Room for all keys and values."""
        keys, values = (
            like.new_empty(len(like), self.heads.heads, length, size)
            for size in (self.heads.key_size, self.heads.value_size)
        )
        return KeysValuesSoFar(keys, values, 0)

    def step(self, x: Tensor, state: KeysValuesSoFar) -> tuple[Tensor, KeysValuesSoFar]:
        """The new key and value are written where they belong, and all so far are read."""
        keys, values, used = state.keys, state.values, state.used + 1
        if used > keys.size(2):
            raise ValueError(f"there is room for {keys.size(2)} positions, and no more; begin with a greater length")
        k, v = self.heads.project(x.unsqueeze(1))
        keys[:, :, used - 1 : used], values[:, :, used - 1 : used] = k, v
        out, _ = self.heads(x.unsqueeze(1), (keys[:, :, :used], values[:, :, :used]))
        return out.squeeze(1), KeysValuesSoFar(keys, values, used)


class HashedAttention(SelfAttention):
    """Reformer's attention, of the paper's comparisons "lsh-X" with X rounds; it has no recurrent form."""

    recurrent = False

    def __init__(self, *, width: int, heads: int, rounds: int, buckets: int, chunk: int) -> None:
        super().__init__()
        self.heads = LSHSelfAttention(
            width=width, heads=heads, key_size=width // heads, value_size=width // heads, buckets=buckets, chunk=chunk,
            rounds=rounds, bias=True,
        )  # fmt: skip

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """See :class:`SelfAttention`."""
        out: Tensor = self.heads(x, mask=mask, causal=causal)[0]
        return out

    def begin(self, like: Tensor, length: int) -> Any:
        """Refuse: which keys are near is known only when all are there."""
        raise NotImplementedError("attention by hashing has no recurrent form; compute the whole prefix")

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Refuse, as :meth:`begin` does."""
        raise NotImplementedError("attention by hashing has no recurrent form; compute the whole prefix")

    def redraw(self, generator: torch.Generator) -> None:
        """Draw the hashes' rotations."""
        self.heads.redraw(generator)


class Layer(nn.Module):
    """T_l(x) = f_l(A_l(x) + x), equation (1), normalised after each of the two sums.

    Args:
        attention: A_l.
        width: D.
        hidden_size: of f_l, two products with ReLU between them.
        dropout: after attention and after both products.
    """

    def __init__(self, *, attention: SelfAttention, width: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = nn.Sequential(
            nn.Linear(width, hidden_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, width)
        )
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self._f(self.attention(x, mask, causal), x)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next position (B, D), and attention's state after it."""
        a, state = self.attention.step(x, state)
        return self._f(a, x), state

    def _f(self, a: Tensor, x: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(a))
        out: Tensor = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return out


class RecurrentState(NamedTuple):
    """What the model remembers of the symbols so far: how many they are, and each layer's state."""

    place: int
    layers: tuple[Any, ...]


class LinearTransformer(nn.Module):
    """Symbols to the states that predict each the next one (causal), or a hidden one from all others.

    Args:
        symbols: of the vocabulary.
        width: D.
        hidden_size: of the feed-forward networks.
        attentions: makes A_l of each layer.
        layers: how many.
        output: from states to the probabilities of symbols: a softmax, or for pixels a mixture of logistics.
        causal: whether position i sees those up to i only.
        concatenated: whether embedding and sinusoids have half of the width each, as in the authors' programs, or
            all of it, and are added.
        length: symbols of the longest sequence, for which the recurrent form of softmax attention has room.
        dropout: on attention and feed-forward networks.
    """

    origin: Tensor

    def __init__(
        self, *, symbols: int, width: int, hidden_size: int, attentions: Callable[[], SelfAttention], layers: int,
        output: Output, causal: bool, length: int, concatenated: bool = False, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.causal, self.length, self.concatenated = width, causal, length, concatenated
        self.embedding = nn.Embedding(symbols, width // 2 if concatenated else width)
        self.positions = SinusoidalPositions(width=self.embedding.embedding_dim)
        self.layers = nn.ModuleList(
            Layer(attention=attentions(), width=width, hidden_size=hidden_size, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.output: Output = output
        self.register_buffer("origin", torch.randint(2**31, ()))

    @property
    def recurrent(self) -> bool:
        """Whether there is :meth:`step`."""
        return self.causal and all(layer.attention.recurrent for layer in self._layers)

    @property
    def _layers(self) -> Sequence[Layer]:
        return tuple(self.layers)  # type: ignore[arg-type]

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Symbols (B, T) to states (B, T, D); ``mask`` (B, T) is true at what is no padding, None if all is."""
        x = self._embedded(inputs, 0)
        for layer in self._layers:
            x = layer(x, mask, self.causal)
        h: Tensor = self.norm(x)
        return h

    def initial_state(self, batch: int) -> RecurrentState:
        """Before the first symbol of so many sequences."""
        like = self.embedding.weight.new_empty(batch, self.width)
        return RecurrentState(0, tuple(layer.attention.begin(like, self.length) for layer in self._layers))

    def step(self, symbols: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One symbol of each sequence (B,) to its state (B, D), section 3.4, and what is remembered after it."""
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
        """Before every update of training: hashes are drawn anew, the same ones again if training is resumed."""
        generator = torch.Generator(self.origin.device).manual_seed(int(self.origin) + number)
        for layer in self._layers:
            layer.attention.redraw(generator)

    def _embedded(self, symbols: Tensor, start: int) -> Tensor:
        """(B, T), the first of them at the place ``start``, to (B, T, D)."""
        x = self.embedding(symbols)
        p = self.positions(start, start + symbols.size(1))
        return torch.cat((x, p.expand_as(x)), dim=-1) if self.concatenated else x + p
