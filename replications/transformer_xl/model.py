"""Transformer-XL: attentive language models beyond a fixed-length context (Dai, Yang et al., ACL 2019).

The whole model, top to bottom, and what the paper compares it with. The terms of its attention are in
``shared/attention/relative.py``, its memory is in :mod:`.memory`; both have faster twins
(:mod:`shared.attention.twins`). The adaptive softmax is in :mod:`.adaptive`. Sections, equations and names are those of
arXiv 1901.02860v3; sizes have the names of its scripts.

Shape letters: B columns, T symbols of a segment, M length of the memory, S = M + T positions of the context (fewer
while the memory fills up), D model width, H heads, K width of a head's keys, C distances that have an encoding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from replications.transformer_xl.adaptive import AdaptiveSoftmax
from replications.transformer_xl.memory import HeldInputs, HeldStates, KeyValueMemory, SegmentMemory, StateMemory
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import (
    GlobalBiases,
    LearnedDistances,
    ProjectedDistances,
    RelativeMultiHeadAttention,
    memory_mask,
)
from shared.attention.twins import plain_equations, runs_as
from shared.decoding.protocol import Reach
from shared.layers.positions import SinusoidalPositions
from shared.layers.transformer import FeedForward, Layer

Positions = Literal["relative", "shaw", "absolute"]
"""How a model tells where a symbol stands: section 3.3; the learned distances of Shaw et al. (2018); or sinusoids added
to the embeddings, counted from the beginning of every segment, whether or not an earlier one is remembered."""


Memory = SegmentMemory | HeldInputs


def buffered_memory(model: TransformerXL, columns: int, reach: Reach) -> Memory:
    """The twin of :func:`memory_of`, in one buffer: of inputs in training, of keys and values in evaluation."""
    layers, like = len(model.layers), model.softmax.embedding.tables[0].detach()
    if model.training:
        return StateMemory(reach, layers=layers, columns=columns, width=model.softmax.embedding.width, like=like)
    return KeyValueMemory(
        reach, layers=layers, columns=columns, heads=model.heads, key_size=model.key_size, like=like
    )  # fmt: skip


@runs_as(buffered_memory)
def memory_of(model: TransformerXL, columns: int, reach: Reach) -> Memory:
    """An empty memory of B texts: m^0 … m^{N-1} (section 3.2)."""
    return HeldInputs(reach)


def attend(
    attention: nn.Module, found: list[Tensor], seen: tuple[Any, ...], h: Tensor, *, mask: Tensor, weights: bool
) -> Tensor:
    """(B, T, D) to (B, T, D) by a layer's attention to what is ``seen``; its weights are appended to ``found``."""
    h, a = attention(h, *seen, mask=mask, weights=weights)
    found.append(a)
    return h


class Recurrent(nn.Module):
    """A language model that reads a text segment by segment; see :class:`shared.decoding.protocol.LanguageModel`.

    Args:
        softmax: whose embedding, times √D, is also that of the inputs (section 4.1).
    """

    def __init__(self, *, softmax: AdaptiveSoftmax) -> None:
        super().__init__()
        self.softmax = softmax

    @abstractmethod
    def states(self, inputs: Tensor, memory: Any | None) -> Tensor:
        """Symbols (B, T) to the states (B, T, D) that predict what follows each; the memory moves on."""

    def forward(self, inputs: Tensor, targets: Tensor, memory: Any | None = None) -> Tensor:
        """-log p of every target after the inputs up to its place: (B, T) and (B, T) to (B, T) nats."""
        return self.softmax(self.states(inputs, memory), targets)

    def next_log_probs(self, inputs: Tensor, memory: Any | None = None) -> Tensor:
        """Log-probabilities (B, V) of what follows the last of the inputs (B, T)."""
        return self.softmax.log_probs(self.states(inputs, memory)[:, -1])


class TransformerXL(Recurrent):
    """The Transformer with memory and relative positions, or with less of either.

    Args:
        softmax: see :class:`Recurrent`.
        layers: N (n_layer).
        heads: H (n_head).
        key_size: K (d_head).
        hidden_size: d_inner.
        positions: how symbols know their places.
        shaw_distances: the distance from which on all have one vector, for ``shaw``.
        untied_biases: each layer has its own u and v (``untie_r``); otherwise all share them.
        dropout: on embeddings, encodings of distances, sub-layers and the output.
        attention_dropout: on attention's weights (``dropatt``); none where positions are absolute.
        std: of the normal distribution that weights begin with.
    """

    layers: Any

    def __init__(
        self, *, softmax: AdaptiveSoftmax, layers: int, heads: int, key_size: int, hidden_size: int,
        positions: Positions = "relative", shaw_distances: int = 0, untied_biases: bool = False,
        dropout: float = 0.0, attention_dropout: float = 0.0, std: float = 0.02,
    ) -> None:  # fmt: skip
        super().__init__(softmax=softmax)
        width = softmax.embedding.width
        self.heads, self.key_size, self.relative = heads, key_size, positions != "absolute"
        shared = GlobalBiases(heads=heads, key_size=key_size) if positions == "relative" else None

        def attention() -> nn.Module:
            if positions == "absolute":
                return MultiHeadAttention(query_size=width, heads=heads, key_size=key_size, value_size=key_size)
            own = GlobalBiases(heads=heads, key_size=key_size) if shared is not None and untied_biases else shared
            distances = (
                ProjectedDistances(width=width, heads=heads, key_size=key_size)
                if positions == "relative"
                else LearnedDistances(largest=shaw_distances, key_size=key_size)
            )
            return RelativeMultiHeadAttention(
                width=width, heads=heads, key_size=key_size, positions=distances, biases=own, dropout=attention_dropout
            )

        self.layers = nn.ModuleList(
            Layer(
                width=width, attention=attention(), dropout=dropout,
                feed_forward=FeedForward(width=width, hidden_size=hidden_size, dropout=dropout, xavier=False),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.encodings = SinusoidalPositions(width=width)
        self.dropout = nn.Dropout(dropout)
        _reset(self.layers, std)

    def memory(self, columns: int, reach: Reach) -> Memory:
        """An empty memory of B texts; it stays with the mode, training or evaluation, that the model is in."""
        return memory_of(self, columns, reach)

    def states(self, inputs: Tensor, memory: Memory | None) -> Tensor:
        """(B, T) symbols to h^N (B, T, D)."""
        return self._read(inputs, self.memory(len(inputs), Reach(0)) if memory is None else memory)[0]

    @plain_equations()
    def attention_maps(self, segments: Iterable[Tensor], reach: Reach) -> Tensor:
        """The weights (N, B, H, T, S) in the last of some segments (B, T), which are read one after the other."""
        memory = HeldInputs(reach)
        for inputs in segments:
            _, weights = self._read(inputs, memory, weights=True)
        return torch.stack(weights)

    def _read(self, inputs: Tensor, memory: Memory, *, weights: bool = False) -> tuple[Tensor, list[Tensor]]:
        """One segment, the summary of the procedure in section 3.3: h^N, and each layer's weights (B, H, T, S)."""
        symbols, reach = inputs.size(1), memory.reach
        keys = len(memory) + symbols
        mask = memory_mask(symbols, keys, window=reach.memory if reach.same_length else None, device=inputs.device)
        h = self.softmax.embedding(inputs)  # (B, T, D)
        h = self.dropout(h if self.relative else h + self.encodings(0, symbols))
        # R of the distances for so many keys (C, D), the same for all layers; from C on distances are clamped.
        r = cache(lambda keys: self.dropout(self.encodings(0, min(keys, (reach.clamp or keys) + 1))))
        found: list[Tensor] = []
        for n, layer in enumerate(self.layers):
            context = memory.context(n, h, layer.attention.project)  # of h̃^{n-1} = [SG(m^{n-1}) ∘ h^{n-1}]
            positions: tuple[Tensor, ...] = ()
            if self.relative:
                project = partial(_projected, layer.attention.positions, r)
                positions = (memory.distances(n, keys, project),)  # W_{k,R} R, (H, S, K)
            h = layer(h, partial(attend, layer.attention, found, (context, *positions), mask=mask, weights=weights))
        memory.advance(symbols)
        return self.dropout(h), found


def _projected(positions: nn.Module, r: Callable[[int], Tensor], keys: int) -> Tensor:
    """A layer's vectors (H, S, K) of the distances of S keys."""
    return positions(r(keys), keys)


class LSTMLanguageModel(Recurrent):
    """The recurrent network that table 8 compares with: an LSTM with dropout between layers (Zaremba et al. 2014).

    Its embedding is tied to its softmax, so that states are as wide as embeddings.

    Args:
        softmax: see :class:`Recurrent`.
        layers: N.
        dropout: on embeddings, between layers and on the output.
    """

    def __init__(self, *, softmax: AdaptiveSoftmax, layers: int, dropout: float = 0.0) -> None:
        super().__init__(softmax=softmax)
        width = softmax.embedding.width
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)

    def memory(self, columns: int, reach: Reach) -> HeldStates:
        """An empty memory; it takes the number of texts from what it is given first."""
        return HeldStates(reach)

    def states(self, inputs: Tensor, memory: HeldStates | None) -> Tensor:
        """(B, T) symbols to (B, T, D); no gradient flows into the state before the segment."""
        before = memory.held if memory is not None and memory.held else None
        h, after = self.lstm(self.dropout(self.softmax.embedding(inputs)), before)
        if memory is not None and memory.reach.memory:
            memory.held = tuple(state.detach() for state in after)
        return self.dropout(h)


@torch.no_grad()
def _reset(layers: nn.Module, std: float) -> None:
    """Weights ~ N(0, std²), biases 0, LayerNorm's gains ~ N(1, std²), baselines alike."""
    for name, parameter in layers.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        else:
            parameter.normal_(mean=1.0 if "norm" in name else 0.0, std=std)
