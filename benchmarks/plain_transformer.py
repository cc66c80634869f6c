"""The Transformer as one would write it first: the comparison partner of benchmarks and tests.

The equations of Vaswani et al. (2017) head by head on the very parameters of a model of ours. To decode, every symbol's
whole prefix is computed anew; only the encoder's output is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from replications.transformer.model import MultiHeadAttention, Transformer
from shared.decoding.protocol import select_beams, select_sources


@dataclass(frozen=True)
class State:
    memory: Tensor  # (B, S, D), the encoder's output
    mask: Tensor  # (B, S), true at source symbols
    prefixes: Tensor  # (B, k, T)


class PlainTransformer(nn.Module):
    """The same function of the same parameters as ``model`` in evaluation, where nothing is dropped."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S), (B, S), (B, T) to logits (B, T, V) and the last layer's mean attention to the source (B, T, S)."""
        y, weights = self.decode(self.encode(source, mask), mask, target)
        return self.logits(y), weights

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """(B, S) symbols to (B, S, D)."""
        x = self.embed(source)
        for layer in self.model.encoder:
            x = norm(x + attention(layer.attention, x, x, mask.unsqueeze(1))[0], layer.attention_norm)
            x = norm(x + feed_forward(x, layer.feed_forward), layer.feed_forward_norm)
        return x

    def decode(self, memory: Tensor, mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D), (B, S), (B, T) to the decoder's output (B, T, D) and weights (B, T, S)."""
        length = target.size(1)
        before = torch.ones(length, length, dtype=torch.bool, device=target.device).tril()
        y = self.embed(target)
        for layer in self.model.decoder:
            y = norm(y + attention(layer.attention, y, y, before)[0], layer.attention_norm)
            z, weights = attention(layer.source_attention, y, memory, mask.unsqueeze(1))
            y = norm(y + z, layer.source_norm)
            y = norm(y + feed_forward(y, layer.feed_forward), layer.feed_forward_norm)
        return y, weights

    def logits(self, y: Tensor) -> Tensor:
        """(…, D) to (…, V)."""
        return y @ self.model.embedding.weight.t()

    def embed(self, symbols: Tensor) -> Tensor:
        """(B, L) to (B, L, D)."""
        e = self.model.embedding.weight[symbols]
        return e * math.sqrt(e.size(-1)) + self.model.positions(0, symbols.size(1))

    def start(self, source: Tensor, mask: Tensor) -> State:
        """Encode (B, S) symbols under their mask (B, S)."""
        return State(self.encode(source, mask), mask, source.new_empty(len(source), 1, 0))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Append symbols (B, k) and compute everything from the first symbol on."""
        prefixes = torch.cat((state.prefixes, tokens.unsqueeze(2)), dim=2)
        beams = tokens.size(1)
        memory, mask = (x.repeat_interleave(beams, dim=0) for x in (state.memory, state.mask))
        y, weights = self.decode(memory, mask, prefixes.flatten(0, 1))
        log_p = torch.log_softmax(self.logits(y[:, -1]), dim=-1)
        return (
            log_p.view(*tokens.shape, -1),
            weights[:, -1].view(*tokens.shape, -1),
            State(state.memory, state.mask, prefixes),
        )

    def reorder(self, state: State, sources: Tensor | None, beams: Tensor) -> State:
        """Keep some sources and beams."""
        return State(
            select_sources(state.memory, sources),
            select_sources(state.mask, sources),
            select_beams(state.prefixes, sources, beams),
        )


def attention(layer: MultiHeadAttention, x: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(B, Q, D), (B, S, D) and a mask broadcastable to (B, Q, S) to (B, Q, D) and mean weights (B, Q, S)."""
    h, d_k, d_v = layer.heads, len(layer.w_q.weight) // layer.heads, layer.w_o.in_features // layer.heads
    keys, values = layer.w_kv.weight.split((h * d_k, h * d_v))
    heads, weights = [], []
    for i in range(h):
        q = x @ layer.w_q.weight[i * d_k : (i + 1) * d_k].t()
        k = memory @ keys[i * d_k : (i + 1) * d_k].t()
        v = memory @ values[i * d_v : (i + 1) * d_v].t()
        scores = q @ k.transpose(1, 2) / (1.0 if layer.scale == 1.0 else math.sqrt(d_k))
        weights.append(torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1))
        heads.append(weights[-1] @ v)
    return torch.cat(heads, dim=-1) @ layer.w_o.weight.t(), torch.stack(weights).mean(0)


def feed_forward(x: Tensor, layer: nn.Module) -> Tensor:
    """(B, L, D) to (B, L, D)."""
    hidden = torch.clamp(x @ layer.w_1.weight.t() + layer.w_1.bias, min=0)
    return hidden @ layer.w_2.weight.t() + layer.w_2.bias


def norm(x: Tensor, layer: nn.LayerNorm) -> Tensor:
    """Layer normalisation of (B, L, D)."""
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return (x - x.mean(dim=-1, keepdim=True)) / torch.sqrt(variance + layer.eps) * layer.weight + layer.bias
