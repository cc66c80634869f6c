"""The Transformer that papers build on around attentions of their own: encoder-decoder, encoder and decoder.

Embeddings, layers, teacher forcing, and decoding with a cache of keys and values are those of Vaswani et al. (2017),
whose own equations stand in one piece in the model of that paper. :class:`Transformer` translates, and has separate
attentions in the encoder, in the decoder and to the source; :class:`SequenceTransformer` reads one sequence.

Shape letters: B batch, S source length (end symbol included), T target length or symbols, k beams, D model width,
N layers, H heads, K key width, V value width or, of logits, vocabulary.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.multi_head import KeysValues
from shared.decoding.key_value_cache import KeyValueCache
from shared.decoding.protocol import SymbolOutput, select_sources
from shared.layers.positions import SinusoidalPositions

Norm = Literal["pre", "post"]
"""Where a layer normalises: what goes into a sub-layer, x + f(LN(x)), or the sum, LN(x + f(x))."""


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, section 3.3, equation 2).

    Args:
        width: D of input and output.
        hidden_size: width of the layer between (d_ff).
        dropout: of that layer.
        xavier: whether weights begin as Glorot and Bengio (2010) have it and biases at 0, or as ``nn.Linear`` has it.
    """

    def __init__(self, *, width: int, hidden_size: int, dropout: float = 0.0, xavier: bool = True) -> None:
        super().__init__()
        self.w_1 = nn.Linear(width, hidden_size)
        self.w_2 = nn.Linear(hidden_size, width)
        self.dropout = nn.Dropout(dropout)
        for linear in (self.w_1, self.w_2) if xavier else ():
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) to (…, D)."""
        out: Tensor = self.w_2(self.dropout(torch.relu(self.w_1(x))))
        return out


class Layer(nn.Module):
    """Attention, attention to a source if there is any, and a feed-forward network, each with residual and norm.

    Args:
        width: D.
        attention: of the sequence to itself.
        feed_forward: the network.
        dropout: after each sub-layer.
        norm: see :data:`Norm`.
        source_attention: of a decoder's layer.
    """

    def __init__(
        self, *, width: int, attention: Any, feed_forward: nn.Module, dropout: float, norm: Norm = "post",
        source_attention: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pre = norm == "pre"
        self.attention = attention
        if source_attention is not None:
            self.source_attention = source_attention
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(width)
        if source_attention is not None:
            self.source_norm = nn.LayerNorm(width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, attend: Callable[[Tensor], Tensor], attend_source: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """(…, D) to (…, D), with what calls ``attention`` and ``source_attention``: (…, D) to (…, D) each."""
        x = self._sublayer(x, attend, self.attention_norm)
        if attend_source is not None:
            x = self._sublayer(x, attend_source, self.source_norm)
        return self._sublayer(x, self.feed_forward, self.feed_forward_norm)

    def _sublayer(self, x: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        if self.pre:
            return x + self.dropout(f(norm(x)))  # type: ignore[no-any-return]
        return norm(x + self.dropout(f(x)))  # type: ignore[no-any-return]


class Positions(NamedTuple):
    """Where queries and keys stand in their sequences, from 0."""

    queries: Tensor
    """(T,)."""
    keys: Tensor
    """(S,); or (B, S) of a decoder's step, where the cache holds the keys of all beams in any order."""


class Attention(Protocol):
    """What a :class:`Transformer` attends with: :class:`shared.attention.multi_head.MultiHeadAttention` or its like."""

    def project(self, memory: Tensor) -> KeysValues:
        """(B, S, D) to keys (B, H, S, K) and values (B, H, S, V)."""
        ...

    def __call__(
        self, x: Tensor, memory: KeysValues, *, mask: Tensor | None = None, causal: bool = False, weights: bool = False,
        positions: Positions,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Queries (B, T, D) to (B, T, D), and weights (B, H, T, S) if they are wanted.

        Args:
            x: (B, T, D).
            memory: projected.
            mask: bool, broadcastable to (B, H, T, S), true where a query may look.
            causal: instead of ``mask``: query i sees the keys up to i.
            weights: whether they are wanted.
            positions: of queries and keys.
        """
        ...


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from symbol to symbol; all of it belongs to sources, whose beams share it."""

    memory: list[KeysValues]  # of each layer: keys (B, H, S, K) and values (B, H, S, V) of the encoder's output
    mask: Tensor  # (B, 1, 1, S), true at source symbols
    cache: KeyValueCache  # of the target symbols so far
    t: int  # target position, from 0


class Transformer(nn.Module):
    """Encoder and decoder with one matrix for both embeddings and the softmax (Vaswani et al. 2017, section 3.4).

    Args:
        vocabulary: V, symbols of source and target together.
        width: D.
        layers: N of the encoder, and of the decoder.
        hidden_size: d_ff.
        dropout: P_drop, on every sub-layer's output and on the sums of embeddings and positions.
        positions: from a range of positions to their encodings, see :mod:`shared.layers.positions`.
        encoder_attention: makes the self-attention of an encoder's layer, see :class:`Attention`.
        decoder_attention: makes the self-attention of a decoder's layer; that of the encoder unless given.
        source_attention: makes attention to the encoder's output; that of the encoder unless given.
    """

    encoder: Any
    decoder: Any

    def __init__(
        self, *, vocabulary: int, width: int, layers: int, hidden_size: int, dropout: float, positions: nn.Module,
        encoder_attention: Callable[[], Attention], decoder_attention: Callable[[], Attention] | None = None,
        source_attention: Callable[[], Attention] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        decoder_attention = decoder_attention or encoder_attention
        source_attention = source_attention or encoder_attention
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)  # times √D, and in the softmax, of unit variance
        self.positions = positions
        self.encoder = nn.ModuleList(
            Layer(
                width=width, dropout=dropout, attention=encoder_attention(),
                feed_forward=FeedForward(width=width, hidden_size=hidden_size),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.decoder = nn.ModuleList(
            Layer(
                width=width, dropout=dropout, attention=decoder_attention(), source_attention=source_attention(),
                feed_forward=FeedForward(width=width, hidden_size=hidden_size),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout)

    def embed(self, symbols: Tensor, start: int = 0) -> Tensor:
        """√D · E[symbol] + PE (sections 3.4, 3.5) of (B, L) symbols at positions from ``start``: (B, L, D)."""
        e = self.embedding(symbols) * math.sqrt(self.embedding.embedding_dim)
        embedded: Tensor = self.dropout(e + self.positions(start, start + symbols.size(1)))
        return embedded

    def encode(self, source: Tensor, mask: Tensor, *, weights: bool = False) -> tuple[Tensor, list[Tensor]]:
        """(B, S) symbols under the mask (B, 1, 1, S) to (B, S, D), and every layer's weights if they are wanted."""
        x, weights_of_layers = self.embed(source), []
        places = torch.arange(source.size(1), device=source.device)
        for layer in self.encoder:

            def attend(z: Tensor, attention: Attention = layer.attention) -> Tensor:
                memory = attention.project(z)
                z, a = attention(z, memory, mask=mask, weights=weights, positions=Positions(places, places))
                weights_of_layers.append(a)
                return z

            x = layer(x, attend)
        return x, [a for a in weights_of_layers if a is not None]

    def decode(
        self, y: Tensor, state: DecoderState, *, beams: bool = False, weights: range = range(0)
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Embedded target symbols (B, T, D) to the decoder's output (B, T, D).

        Args:
            y: all symbols from the first on, or the newest symbol of each beam (T = k).
            state: of the source; with ``beams`` the cache is opened for this step, and each of y sees itself and the
                cached positions of its beam's ancestors.
            beams: whether y is of beams.
            weights: of which layers they are wanted.

        Returns:
            (B, T, D), and of the layers asked for the weights (B, H, T, ·) on the target and on the source.
        """
        of_source = torch.arange(state.mask.size(-1), device=y.device)
        of_y = torch.arange(y.size(1), device=y.device)
        places, keys, seen = of_y, of_y, None
        if beams:
            places, keys, seen = torch.full_like(of_y, state.t), state.cache.places, state.cache.mask
        on_target, on_source = [], []
        for n, layer in enumerate(self.decoder):

            def attend(z: Tensor, n: int = n, attention: Attention = layer.attention) -> Tensor:
                past = attention.project(z)
                past = state.cache.write(n, *past) if beams else past
                z, a = attention(
                    z, past, mask=seen, causal=not beams, weights=n in weights, positions=Positions(places, keys)
                )
                on_target.append(a)
                return z

            def attend_source(z: Tensor, n: int = n, attention: Attention = layer.source_attention) -> Tensor:
                positions = Positions(places, of_source)
                z, a = attention(z, state.memory[n], mask=state.mask, weights=n in weights, positions=positions)
                on_source.append(a)
                return z

            y = layer(y, attend, attend_source)
        return y, [a for a in on_target if a is not None], [a for a in on_source if a is not None]

    def logits(self, y: Tensor) -> Tensor:
        """(B, T, D) to (B, T, V), by the embedding matrix."""
        return functional.linear(y, self.embedding.weight)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing.

        Args:
            source: (B, S) symbols, the end symbol last.
            source_mask: (B, S) bool, true at symbols.
            target: (B, T) the symbol before each predicted one, beginning with the start symbol.

        Returns:
            Logits (B, T, V), and in evaluation mode the last layer's attention to the source, mean over heads,
            (B, T, S); training does not compute it.
        """
        state = self.start(source, source_mask)
        y, _, on_source = self.decode(self.embed(target), state, weights=range(0) if self.training else self._last)
        return self.logits(y), None if self.training else on_source[0].mean(1)

    def attention_maps(self, source: Tensor, source_mask: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Every head's weights, for arguments as in :meth:`forward`.

        Returns:
            ``encoder`` (N, B, H, S, S), ``decoder`` (N, B, H, T, T) and ``cross`` (N, B, H, T, S).
        """
        x, encoder = self.encode(source, source_mask[:, None, None], weights=True)
        every = range(len(self.decoder))
        _, decoder, cross = self.decode(self.embed(target), self._state(x, source_mask), weights=every)
        return {"encoder": torch.stack(encoder), "decoder": torch.stack(decoder), "cross": torch.stack(cross)}

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """Encode (B, S) source symbols under their mask (B, S)."""
        return self._state(self.encode(source, mask[:, None, None])[0], mask)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """One symbol further: previous symbols (B, k) to log p (B, k, V), weights (B, k, S) and the next state."""
        state.cache.open(tokens.size(1), state.t)
        e = self.embed(tokens.view(-1, 1), state.t).view(*tokens.shape, -1)  # (B, k, D), all at position t
        y, _, on_source = self.decode(e, state, beams=True, weights=self._last)
        log_p = torch.log_softmax(self.logits(y), dim=-1)  # (B, k, V)
        return log_p, on_source[0].mean(1), replace(state, t=state.t + 1)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        state.cache.reorder(sources, beams)
        memory = [(select_sources(k, sources), select_sources(v, sources)) for k, v in state.memory]
        return replace(state, memory=memory, mask=select_sources(state.mask, sources))

    def _state(self, x: Tensor, mask: Tensor) -> DecoderState:
        """Before the first target symbol, from the encoder's output (B, S, D) and its mask (B, S)."""
        memory = [layer.source_attention.project(x) for layer in self.decoder]
        return DecoderState(memory, mask[:, None, None], KeyValueCache(len(x), x.device), 0)

    @property
    def _last(self) -> range:
        """The last layer."""
        return range(len(self.decoder) - 1, len(self.decoder))


class SelfAttention(nn.Module, ABC):
    """Attention of a sequence to itself, with all its heads and projections, in a :class:`SequenceTransformer`.

    Attributes:
        recurrent: whether it has :meth:`begin` and :meth:`step`, one position after the other from a state.
    """

    recurrent: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """(B, T, D) at the positions 0 … T - 1 to (B, T, D); ``mask`` (B, T) is true at symbols, None if all are."""

    def begin(self, like: Tensor, length: int) -> Any:
        """The state before the first position of sequences of at most ``length``; ``like`` is (B, D)."""
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form; compute the whole prefix")

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next position (B, D), causal, and the state after it."""
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form; compute the whole prefix")

    def redraw(self, generator: torch.Generator) -> None:
        """Draw anew what is random, if anything is."""


class RecurrentState(NamedTuple):
    """What a model remembers of the symbols so far: how many they are, and each layer's state."""

    place: int
    layers: tuple[Any, ...]


class SequenceTransformer(nn.Module):
    """Symbols to the states that predict each the next one (causal), or a hidden one from all others.

    It is a :class:`shared.decoding.protocol.GenerativeModel`.

    Args:
        symbols: of the vocabulary.
        width: D.
        hidden_size: of the feed-forward networks.
        attentions: makes the self-attention of each layer.
        layers: how many.
        output: makes the output layer; it is called last, after all other layers have drawn their weights.
        causal: whether position i sees those up to i only.
        norm: see :data:`Norm`.
        positions: their encodings, of the embeddings' width; sinusoids unless given.
        concatenated: whether embedding and positions have half of the width each, or all of it, and are added.
        length: symbols of the longest sequence, which a recurrent attention may need room for.
        dropout: on attention and feed-forward networks.
        embedding_dropout: on embeddings with their positions.
    """

    layers: Any
    origin: Tensor

    def __init__(
        self, *, symbols: int, width: int, hidden_size: int, attentions: Callable[[], SelfAttention], layers: int,
        output: Callable[[], Any], causal: bool, norm: Norm, positions: nn.Module | None = None,
        concatenated: bool = False, length: int = 0, dropout: float = 0.0, embedding_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.causal, self.length, self.concatenated = width, causal, length, concatenated
        self.embedding = nn.Embedding(symbols, width // 2 if concatenated else width)
        self.positions = positions or SinusoidalPositions(width=self.embedding.embedding_dim)
        self.layers = nn.ModuleList(
            Layer(
                width=width, attention=attentions(), dropout=dropout, norm=norm,
                feed_forward=FeedForward(width=width, hidden_size=hidden_size, dropout=dropout, xavier=False),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(embedding_dropout)
        self.output: SymbolOutput = output()
        self.register_buffer("origin", torch.randint(2**31, ()))

    @property
    def attentions(self) -> Sequence[Any]:
        """Those of all layers, the lowest first."""
        return [layer.attention for layer in self.layers]

    @property
    def recurrent(self) -> bool:
        """Whether there is :meth:`step`."""
        return self.causal and all(attention.recurrent for attention in self.attentions)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Symbols (B, T) to states (B, T, D); ``mask`` (B, T) is true at symbols, None without padding."""
        x = self._embedded(inputs, 0)
        for layer in self.layers:
            x = layer(x, partial(layer.attention, mask=mask, causal=self.causal))
        h: Tensor = self.norm(x)
        return h

    def initial_state(self, batch: int) -> RecurrentState:
        """Before the first symbol of so many sequences."""
        like = self.embedding.weight.new_empty(batch, self.width)
        return RecurrentState(0, tuple(attention.begin(like, self.length) for attention in self.attentions))

    def step(self, symbols: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One symbol of each sequence (B,) to its state (B, D), and what is remembered after it."""
        x, after = self._embedded(symbols.unsqueeze(1), state.place).squeeze(1), []
        for layer, before in zip(self.layers, state.layers, strict=True):

            def attend(z: Tensor, attention: SelfAttention = layer.attention, before: Any = before) -> Tensor:
                z, state = attention.step(z, before)
                after.append(state)
                return z

            x = layer(x, attend)
        return self.norm(x), RecurrentState(state.place + 1, tuple(after))

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
        embedded: Tensor = self.dropout(torch.cat((x, p.expand_as(x)), dim=-1) if self.concatenated else x + p)
        return embedded
