"""Transformer-XL: attentive language models beyond a fixed-length context (Dai, Yang et al., ACL 2019).

The whole model, top to bottom, and what the paper compares it with. :func:`attend` and :func:`read_segment` are its
equations; unless ``fused`` is turned off, twins with the same weights and results run instead: attention that never
holds a vector for each pair (``shared/attention/relative.py``) and a memory in one buffer
(``shared/attention/memory.py``). The adaptive softmax is in ``shared/layers/adaptive.py``. Sections, equations and
names are those of arXiv 1901.02860v3; sizes are those of the released code.

Shape letters: B columns, T symbols of a segment, M length of the memory, S = M + T positions of the context (fewer
while the memory fills up), D model width, H heads, K width of a head's keys, C distances that have an encoding.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.memory import KeyValueMemory, Reach, SegmentMemory, StateMemory
from shared.attention.multi_head import KeysValues, MultiHeadAttention
from shared.attention.relative import (
    GlobalBiases,
    LearnedDistances,
    ProjectedDistances,
    RelativeMultiHeadAttention,
    memory_mask,
)
from shared.attention.softmax import masked_softmax
from shared.layers.adaptive import AdaptiveSoftmax
from shared.layers.positions import SinusoidalPositions

Positions = Literal["relative", "shaw", "absolute"]
"""How a model tells where a symbol stands: section 3.3; the learned distances of Shaw et al. (2018); or sinusoids added
to the embeddings, counted from the beginning of every segment, whether or not an earlier one is remembered."""


def attend(
    attention: RelativeMultiHeadAttention | MultiHeadAttention, h: Tensor, context: Tensor, r: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """softmax(A^rel) V of one layer, with the terms (a) to (d) of section 3.3.

    A^rel_ij = (a) q_iᵀ k_j + (b) q_iᵀ p_{i-j} + (c) uᵀ k_j + (d) vᵀ p_{i-j}, where q_i = W_q h_i, k_j = W_{k,E} h̃_j and
    p_{i-j} = W_{k,R} R_{i-j}. Shaw et al. (2018) have (a) and (b), with learned p; absolute positions have (a) alone.

    Args:
        attention: the layer's weights.
        h: (B, T, D) h^{n-1}.
        context: (B, S, D) h̃^{n-1}, of which h is the last part.
        r: (C, D) R of the distances 0 … C - 1; from C on distances count as C - 1.
        mask: bool, broadcastable to (B, H, T, S), true where a query may look, never at a later key.

    Returns:
        (B, T, D), and the weights (B, H, T, S) before dropout.
    """
    symbols, keys = h.size(1), context.size(1)
    q = attention.w_q(h).unflatten(2, (attention.heads, -1)).transpose(1, 2)  # (B, H, T, K)
    k, v = attention.w_kv(context).unflatten(2, (2, attention.heads, -1)).permute(2, 0, 3, 1, 4)  # (B, H, S, K) each
    scores, dropout = q @ k.mT, 0.0  # (a)
    if isinstance(attention, RelativeMultiHeadAttention):
        i, j = torch.arange(keys - symbols, keys, device=h.device).unsqueeze(1), torch.arange(keys, device=h.device)
        distance = (i - j).clamp(min=0)  # (T, S); what comes after a query is hidden from it
        of_distances = attention.positions(r, keys).expand(attention.heads, -1, -1)  # (H, S, K), for S - 1 … 0
        p = of_distances[:, keys - 1 - distance]  # (H, T, S, K)
        scores = scores + torch.einsum("bhik,hijk->bhij", q, p)  # (b)
        if attention.biases is not None:
            scores = scores + torch.einsum("hk,bhjk->bhj", attention.biases.u, k).unsqueeze(2)  # (c)
            scores = scores + torch.einsum("hk,hijk->hij", attention.biases.v, p)  # (d)
        dropout = attention.dropout
    a = masked_softmax(scores / math.sqrt(q.size(-1)), mask)
    heads = functional.dropout(a, dropout, attention.training) @ v  # (B, H, T, K)
    return attention.w_o(heads.transpose(1, 2).flatten(2)), a


def read_segment(
    model: TransformerXL, inputs: Tensor, memory: Tensor | None, reach: Reach
) -> tuple[Tensor, Tensor | None, Tensor]:
    """One segment, the summary of the procedure in section 3.3.

    Args:
        model: with N layers.
        inputs: (B, T) symbols.
        memory: m^0 … m^{N-1} (N, B, up to M, D); None at the beginning of a text.
        reach: M, and which part of it each query sees.

    Returns:
        h^N (B, T, D), the memory for the next segment, and the weights of attention (N, B, H, T, S).
    """
    symbols, keys = inputs.size(1), inputs.size(1) + (0 if memory is None else memory.size(2))
    mask = memory_mask(symbols, keys, window=reach.memory if reach.same_length else None, device=inputs.device)
    h = model.softmax.embedding(inputs)
    h = model.dropout(h if model.relative else h + model.encodings(0, symbols))
    r = model.dropout(model.encodings(0, min(keys, (reach.clamp or keys) + 1)))
    after, weights = [], []
    layer: Any
    for n, layer in enumerate(model.layers):
        # h̃^{n-1} = [SG(m^{n-1}) ∘ h^{n-1}]
        context = h if memory is None else torch.cat((memory[n].detach(), h), dim=1)
        after.append(context[:, max(keys - reach.memory, 0) :].detach())
        attended, a = attend(layer.attention, h, context, r, mask)
        weights.append(a)
        h = layer.attention_norm(h + layer.dropout(attended))
        h = layer.feed_forward_norm(h + layer.dropout(layer.feed_forward(h)))
    return model.dropout(h), torch.stack(after) if reach.memory else None, torch.stack(weights)


class DecoderLayer(nn.Module):
    """Masked attention to memory and segment, and a feed-forward network, each LayerNorm(h + Sublayer(h)).

    Args:
        width: D.
        attention: :class:`RelativeMultiHeadAttention`, or :class:`MultiHeadAttention` where positions are absolute.
        hidden_size: d_inner.
        dropout: after attention, and after both products of the feed-forward network.
    """

    def __init__(self, *, width: int, attention: nn.Module, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = nn.Sequential(
            nn.Linear(width, hidden_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, width)
        )
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, context: KeysValues, p: Tensor | None, mask: Tensor) -> Tensor:
        """The layer n of section 3.3, with h^{n-1} (B, T, D) to h^n (B, T, D).

        Args:
            h: (B, T, D).
            context: keys and values (B, H, S, K) of h̃^{n-1} = [SG(m^{n-1}) ∘ h^{n-1}].
            p: (H, S, K), W_{k,R} R of the distances S - 1 … 0; None where positions are absolute.
            mask: (T, S), true where a query may look.
        """
        positions = () if p is None else (p,)
        a, _ = self.attention(h, context, *positions, mask=mask)
        h = self.attention_norm(h + self.dropout(a))
        out: Tensor = self.feed_forward_norm(h + self.dropout(self.feed_forward(h)))
        return out


class Recurrent(nn.Module):
    """A language model that reads a text segment by segment; see :class:`shared.decoding.language_model.LanguageModel`.

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
        return self.softmax(self.states(inputs, memory), targets)  # type: ignore[no-any-return]

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

    Attributes:
        fused: whether the twins run in place of :func:`read_segment`.
    """

    fused = True

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
            DecoderLayer(width=width, attention=attention(), hidden_size=hidden_size, dropout=dropout)
            for _ in range(layers)
        )
        self.encodings = SinusoidalPositions(width=width)
        self.dropout = nn.Dropout(dropout)
        _reset(self.layers, std)

    def memory(self, columns: int, reach: Reach) -> SegmentMemory | HeldStates:
        """An empty memory of B texts: of states while the model trains, of keys and values when it is evaluated."""
        if not self.fused:
            return HeldStates(reach)
        like = self.softmax.embedding.tables[0].detach()
        if self.training:
            return StateMemory(
                reach, layers=len(self.layers), columns=columns, width=self.softmax.embedding.width, like=like
            )
        return KeyValueMemory(
            reach, layers=len(self.layers), columns=columns, heads=self.heads, key_size=self.key_size, like=like
        )

    def states(self, inputs: Tensor, memory: SegmentMemory | HeldStates | None) -> Tensor:
        """Section 3.3, the summary of the procedure: (B, T) symbols to h^N (B, T, D)."""
        memory = self.memory(len(inputs), Reach(0)) if memory is None else memory
        if isinstance(memory, HeldStates):
            return self._read(inputs, memory)[0]
        symbols = inputs.size(1)
        keys = len(memory) + symbols
        window = memory.reach.memory if memory.reach.same_length else None
        mask = memory_mask(symbols, keys, window=window, device=inputs.device)
        h = self.softmax.embedding(inputs)  # (B, T, D)
        h = self.dropout(h if self.relative else h + self.encodings(0, symbols))
        r = self._encodings(memory.reach)
        layer: Any
        for n, layer in enumerate(self.layers):
            context = memory.context(n, h, layer.attention.project)
            p = memory.distances(n, keys, self._projection(layer, r)) if self.relative else None
            h = layer(h, context, p, mask)
        memory.advance(symbols)
        out: Tensor = self.dropout(h)
        return out

    def attention_maps(self, segments: Iterable[Tensor], reach: Reach) -> Tensor:
        """The weights (N, B, H, T, S) in the last of some segments (B, T), which are read one after the other."""
        memory = HeldStates(reach)
        for inputs in segments:
            weights = self._read(inputs, memory)[1]
        return weights

    def _read(self, inputs: Tensor, memory: HeldStates) -> tuple[Tensor, Tensor]:
        """One segment by :func:`read_segment`: h^N, and the weights of attention."""
        before = memory.held[0] if memory.held else None
        states, after, weights = read_segment(self, inputs, before, memory.reach)
        memory.held = () if after is None else (after,)
        return states, weights

    def _encodings(self, reach: Reach) -> Callable[[int], Tensor]:
        """From a number of keys to R of their distances (C, D), the same for all layers."""
        return cache(lambda keys: self.dropout(self.encodings(0, min(keys, (reach.clamp or keys) + 1))))

    @staticmethod
    def _projection(layer: Any, r: Callable[[int], Tensor]) -> Callable[[int], Tensor]:
        """From a number of keys S to a layer's vectors of their distances, (H, S, K)."""
        return lambda keys: layer.attention.positions(r(keys), keys)


class HeldStates:
    """What a model has after the last segment, without gradients; nothing at the beginning of a text.

    Of an LSTM it is the hidden and cell states of all layers, (N, B, D) each; of :func:`read_segment` it is m alone.

    Args:
        reach: how much is kept.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.held: tuple[Tensor, ...] = ()

    def clear(self) -> None:
        """Forget everything."""
        self.held = ()

    def state_dict(self) -> dict[str, Tensor]:
        """What is held."""
        return {str(n): tensor for n, tensor in enumerate(self.held)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Hold what another memory held."""
        self.held = tuple(state[str(n)] for n in range(len(state)))


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
        out: Tensor = self.dropout(h)
        return out


@torch.no_grad()
def _reset(layers: nn.Module, std: float) -> None:
    """Weights ~ N(0, std²), biases 0, LayerNorm's gains ~ N(1, std²), as in the released code, baselines alike."""
    for name, parameter in layers.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        else:
            parameter.normal_(mean=1.0 if "norm" in name else 0.0, std=std)
