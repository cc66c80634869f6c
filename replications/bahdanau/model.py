"""Neural machine translation by jointly learning to align and translate (Bahdanau, Cho, Bengio; ICLR 2015).

The whole of RNNsearch and of its baseline RNNencdec, top to bottom. Sections and equations are those of arXiv
1409.0473v7; names are the paper's. The recurrences stand here as loops over steps; twins with hand-written backward
passes run in their place (:mod:`shared.attention.twins`).

Which word a state reads, the paper says in two ways. In appendix A.2.2 s_i reads y_{i-1} and c_i, so that the s_{i-1}
which queries the alignment for y_i, and predicts it, has not read y_{i-1}: only the read-out has. In the authors'
program, GroundHog, s_i reads y_i and c_i, so that it has, as in equation (4). ``wiring`` chooses; all else is the same.

Shape letters: B batch, S source length T_x, T target length T_y, N state width n, M embedding width m,
A alignment width n′, L maxout width l, V target vocabulary K_y, D directions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.additive import AdditiveAttention
from shared.attention.softmax import masked_softmax
from shared.attention.twins import runs_as
from shared.decoding.protocol import select_beams, select_sources
from shared.layers.gated_recurrence import GatedUnit, attentive_recurrence, gated_recurrence


def gated_unit(x: Tensor, h: Tensor, u_gates: Tensor, u_candidate: Tensor) -> Tensor:
    """h′ = (1 - z) ∘ h + z ∘ tanh(x + (r ∘ h) U) with z = σ(x_z + h U_z) and r = σ(x_r + h U_r) (appendix A.1.1).

    Args:
        x: (…, 3N) projected inputs, biases included, in the order candidate, update, reset.
        h: (…, N) the state before.
        u_gates: (…, N, 2N) U_z and U_r side by side.
        u_candidate: (…, N, N) U.

    Returns:
        (…, N).
    """
    candidate, gates = x.split((h.size(-1), 2 * h.size(-1)), dim=-1)
    z, r = torch.sigmoid(gates + h @ u_gates).chunk(2, dim=-1)  # (…, N) each
    return torch.lerp(h, torch.tanh(candidate + (r * h) @ u_candidate), z)


@runs_as(gated_recurrence)
def read(x: Tensor, initial: Tensor, u_gates: Tensor, u_candidate: Tensor, mask: Tensor) -> Tensor:
    """The gated unit over D sequences; arguments and result are those of its twin, :func:`gated_recurrence`."""
    h, states = initial, []  # (D, B, N)
    for t in range(x.size(0)):
        h = torch.where(mask[t].unsqueeze(-1), gated_unit(x[t], h, u_gates, u_candidate), h)
        states.append(h)
    return torch.stack(states)


@runs_as(attentive_recurrence)
def align_and_write(
    x: Tensor, initial: Tensor, keys: Tensor, values: Tensor, mask: Tensor,
    w_a: Tensor, v_a: Tensor, u_gates: Tensor, u_candidate: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The decoder of appendix A.2.2; arguments and results are those of its twin, :func:`attentive_recurrence`."""
    s, states, alphas = initial, [], []  # (B, N)
    for t in range(x.size(0)):
        e = torch.tanh((s @ w_a).unsqueeze(1) + keys) @ v_a  # e_ij = v_aᵀ tanh(W_a s_{i-1} + U_a h_j), (B, S)
        alpha = masked_softmax(e, mask)  # (B, S)
        context = (alpha.unsqueeze(1) @ values).squeeze(1)  # [C; C_z; C_r] c_i = Σ_j α_ij [C; C_z; C_r] h_j, (B, 3N)
        states.append(s)
        alphas.append(alpha)
        s = gated_unit(x[t] + context, s, u_gates, u_candidate)
    return torch.stack(states), torch.stack(alphas)


class Encoder(nn.Module):
    """Reads the source with one gated unit (RNNencdec) or one in each direction (RNNsearch); section 3.2, A.2.1.

    Args:
        vocabulary: number of source symbols K_x.
        embedding_size: M.
        hidden_size: N.
        bidirectional: whether annotations carry a backward state as well.
        dropout: on the embeddings; the paper has none.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.directions = 2 if bidirectional else 1
        self.embedding = nn.Embedding(vocabulary, embedding_size)  # E, shared by both directions
        self.unit = GatedUnit(input_size=embedding_size, hidden_size=hidden_size, directions=self.directions)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, mask: Tensor) -> Tensor:
        """Annotations h_j = [h→_j; h←_j]: (B, S) symbols and their mask to (B, S, D·N).

        The backward unit starts in the padding, where the mask keeps its state at zero until the last word.
        """
        (batch, length), steps = source.shape, mask.t()  # (S, B)
        e = self.dropout(self.embedding(source.t())).unsqueeze(0)  # (1, S, B, M)
        if self.directions == 2:
            e, steps = torch.cat((e, e.flip(1))), torch.stack((steps, steps.flip(0)), dim=1)  # (2, S, B, M), (S, 2, B)
        x = self.unit.project(e.flatten(1, 2)).unflatten(1, (length, batch))  # (D, S, B, 3N)
        initial = x.new_zeros(self.directions, batch, x.size(-1) // 3)
        steps = steps.view(length, self.directions, batch)
        h = read(x.transpose(0, 1), initial, self.unit.u_gates, self.unit.u_candidate, steps)  # (S, D, B, N)
        if self.directions == 1:
            return h[:, 0].transpose(0, 1)  # (B, S, N)
        return torch.cat((h[:, 0], h[:, 1].flip(0)), dim=-1).transpose(0, 1)  # (B, S, 2N)


class DeepOutput(nn.Module):
    """p(y_i) ∝ exp(y_iᵀ W_o t_i), t_i the maxout of U_o s_{i-1} + V_o E y_{i-1} + C_o c_i (appendix A.2.2).

    It reads the state that has queried the alignment; many re-implementations read the one after it.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, context_size: int, maxout_size: int,
        dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.u_o = nn.Linear(hidden_size, 2 * maxout_size)  # its bias serves the sum of the three
        self.v_o = nn.Linear(embedding_size, 2 * maxout_size, bias=False)
        self.c_o = nn.Linear(context_size, 2 * maxout_size, bias=False)
        self.w_o = nn.Linear(maxout_size, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, s: Tensor, e_y: Tensor, c: Tensor) -> Tensor:
        """Logits: s_{i-1} (…, N), E y_{i-1} (…, M), c_i (…, C) to (…, V)."""
        t_tilde = self.u_o(s) + self.v_o(e_y) + self.c_o(c)  # (…, 2L)
        t = torch.maximum(t_tilde[..., 0::2], t_tilde[..., 1::2])  # (…, L)
        return self.w_o(self.dropout(t))  # (…, V)


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from word to word for k beams. All but ``s`` and ``c`` is shared by a source's beams."""

    annotations: Tensor  # (B, S, 2N) h_j; RNNencdec: (B, 1, N), the one context vector
    keys: Tensor  # (B, S, A) U_a h_j; RNNencdec: none
    values: Tensor  # (B, S, 3N) [C; C_z; C_r] h_j
    mask: Tensor  # (B, S) true at words
    s: Tensor  # (B, k, N)
    c: Tensor | None = None  # (B, k, 3N) [C; C_z; C_r] c_{i-1} of the word before, None at the first one


class EncoderDecoder(nn.Module, ABC):
    """What RNNsearch and RNNencdec have in common: embeddings, the decoder's gated unit, the deep output.

    Args:
        source_vocabulary: K_x.
        target_vocabulary: K_y.
        embedding_size: M (620 in the paper).
        hidden_size: N (1000).
        maxout_size: L (500).
        bidirectional: whether the encoder reads in both directions.
        dropout: on embeddings and before the softmax; the paper has none.
        wiring: whether s_i reads y_i, as in the authors' program, or y_{i-1}, as in the appendix.
    """

    def __init__(
        self, *, source_vocabulary: int, target_vocabulary: int, embedding_size: int, hidden_size: int,
        maxout_size: int, bidirectional: bool, dropout: float = 0.0,
        wiring: Literal["program", "appendix"] = "program",
    ) -> None:  # fmt: skip
        super().__init__()
        self.wiring = wiring
        context_size = (1 + bidirectional) * hidden_size
        self.encoder = Encoder(
            vocabulary=source_vocabulary, embedding_size=embedding_size, hidden_size=hidden_size,
            bidirectional=bidirectional, dropout=dropout,
        )  # fmt: skip
        self.embedding = nn.Embedding(target_vocabulary, embedding_size)  # E of the target side
        self.w_s = nn.Linear(hidden_size, hidden_size)
        self.unit = GatedUnit(input_size=embedding_size, hidden_size=hidden_size)  # W, W_z, W_r, U, U_z, U_r
        self.c = nn.Linear(context_size, 3 * hidden_size, bias=False)  # C, C_z, C_r; the unit has the biases
        self.output = DeepOutput(
            vocabulary=target_vocabulary, embedding_size=embedding_size, hidden_size=hidden_size,
            context_size=context_size, maxout_size=maxout_size, dropout=dropout,
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout)

    @torch.no_grad()
    def reset_parameters(self, std: float) -> None:
        """Appendix B.1: U, U_z, U_r orthogonal; W_a, U_a ~ N(0, (std/10)²); v_a, biases 0; the rest N(0, std²)."""
        for module in self.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                module.weight.normal_(std=std)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    module.bias.zero_()
            elif isinstance(module, GatedUnit):
                module.reset_parameters(std)
            elif isinstance(module, AdditiveAttention):
                module.reset_parameters(std / 10)

    @abstractmethod
    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """Encode (B, S) source symbols under their mask; the result has one beam."""

    @abstractmethod
    def unroll(self, x: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, Tensor | None]:
        """From (T, B, 3N) projected target words to s_{i-1} (T, B, N), contexts c_i and, if any, weights (T, B, S)."""

    @abstractmethod
    def align(self, state: DecoderState) -> Tensor:
        """The weights α_i of the next step: (B, k, S)."""

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing.

        Args:
            source: (B, S) symbols.
            source_mask: (B, S) bool, true at words.
            target: (B, T) the previous word y_{i-1} of every step, beginning with the start symbol.

        Returns:
            Logits (B, T, V) and attention weights (B, T, S), or None for RNNencdec.
        """
        state = self.start(source, source_mask)
        e_y = e_read = self.dropout(self.embedding(target.t()))  # (T, B, M) E y_{i-1}, and what s_i reads
        if self.wiring == "program":
            e_y = functional.pad(e_y[1:], (0, 0, 0, 0, 1, 0))  # E y_0 = 0: it has no start symbol
            e_read = e_y.roll(-1, 0)  # E y_i, but for the last one, from which nothing is predicted
        x = self.unit.project(e_read.flatten(0, 1).unsqueeze(0))[0].unflatten(0, e_y.shape[:2])  # (T, B, 3N)
        s, c, alpha = self.unroll(x, state)
        logits = self.output(s.transpose(0, 1), e_y.transpose(0, 1), c.transpose(0, 1))  # (B, T, V)
        return logits, None if alpha is None else alpha.transpose(0, 1)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """One word further: previous words (B, k) to log p(y_i) (B, k, V), weights (B, k, S) and the next state."""
        e_y = self.embedding(tokens)  # (B, k, M) E y_{i-1}
        if self.wiring == "program":  # s_{i-1} is yet to read y_{i-1}
            if state.c is None:
                e_y = torch.zeros_like(e_y)
            else:
                state = self.advance(e_y, state)
        alpha = self.align(state)  # (B, k, S)
        log_p = torch.log_softmax(self.output(state.s, e_y, alpha @ state.annotations), dim=-1)  # (B, k, V)
        state = replace(state, c=alpha @ state.values)
        return log_p, alpha, state if self.wiring == "program" else self.advance(e_y, state)

    def advance(self, e_y: Tensor, state: DecoderState) -> DecoderState:
        """The state that has also read a word, E y (B, k, M), and the last context."""
        x = self.unit.project(e_y.flatten(0, 1).unsqueeze(0))[0].unflatten(0, e_y.shape[:2]) + state.c  # (B, k, 3N)
        return replace(state, s=gated_unit(x, state.s, self.unit.u_gates[0], self.unit.u_candidate[0]))

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        annotations, keys, values, mask = (
            select_sources(tensor, sources) for tensor in (state.annotations, state.keys, state.values, state.mask)
        )
        c = None if state.c is None else select_beams(state.c, sources, beams)
        return DecoderState(annotations, keys, values, mask, select_beams(state.s, sources, beams), c)


class RNNsearch(EncoderDecoder):
    """Aligns and translates jointly: every target word has its own context c_i = Σ_j α_ij h_j (section 3.1).

    Args:
        alignment_size: A (1000 in the paper).
        init_std: standard deviation of the initial weights (0.01).
        sizes: those of :class:`EncoderDecoder`.
    """

    def __init__(self, *, alignment_size: int, hidden_size: int, init_std: float = 0.01, **sizes: Any) -> None:
        super().__init__(hidden_size=hidden_size, bidirectional=True, **sizes)
        self.attention = AdditiveAttention(
            query_size=hidden_size, key_size=2 * hidden_size, alignment_size=alignment_size
        )
        self.reset_parameters(init_std)

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """s_0 = tanh(W_s h←_1): the backward unit has read the whole sentence when it reaches the first word."""
        h = self.encoder(source, mask)  # (B, S, 2N)
        s_0 = torch.tanh(self.w_s(h[:, 0, h.size(-1) // 2 :]))  # (B, N)
        return DecoderState(h, self.attention.keys(h), self.c(h), mask, s_0.unsqueeze(1))

    def unroll(self, x: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, Tensor | None]:
        """The loop over target words; contexts for the read-out are one product afterwards."""
        s, alpha = align_and_write(
            x, state.s[:, 0], state.keys, state.values, state.mask,
            self.attention.w_a, self.attention.v_a, self.unit.u_gates[0], self.unit.u_candidate[0],
        )  # fmt: skip
        c = alpha.transpose(0, 1) @ state.annotations  # (B, T, 2N)
        return s, c.transpose(0, 1), alpha

    def align(self, state: DecoderState) -> Tensor:
        """α_ij ∝ exp(v_aᵀ tanh(W_a s_{i-1} + U_a h_j))."""
        return self.attention(state.s, state.keys, state.mask)  # (B, k, S)


class RNNencdec(EncoderDecoder):
    """The baseline: one context vector, the last forward state of the encoder, for every word (sections 2.2, 4.2)."""

    def __init__(self, *, init_std: float = 0.01, **sizes: Any) -> None:
        super().__init__(bidirectional=False, **sizes)
        self.reset_parameters(init_std)

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """s_0 = tanh(W_s c); the mask carries the state after the last word to the last position."""
        c = self.encoder(source, mask)[:, -1:]  # (B, 1, N)
        no_keys = c.new_empty(c.size(0), 1, 0)
        return DecoderState(c, no_keys, self.c(c), mask[:, :1], torch.tanh(self.w_s(c)))

    def unroll(self, x: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, Tensor | None]:
        """With a constant context the decoder is a plain gated recurrence."""
        x = (x + state.values[:, 0]).unsqueeze(1)  # (T, 1, B, 3N)
        s_0 = state.s.transpose(0, 1)  # (1, B, N)
        every_step = torch.ones(x.shape[:3], dtype=torch.bool, device=x.device)
        after = read(x, s_0, self.unit.u_gates, self.unit.u_candidate, every_step)  # (T, 1, B, N)
        s = torch.cat((s_0.unsqueeze(0), after[:-1]))
        return s[:, 0], state.annotations.transpose(0, 1), None

    def align(self, state: DecoderState) -> Tensor:
        """There is one annotation, so all weight is on it."""
        return state.s.new_ones(*state.s.shape[:2], 1)
