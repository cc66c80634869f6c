"""Effective approaches to attention-based neural machine translation (Luong, Pham, Manning; EMNLP 2015).

The whole encoder-decoder, top to bottom: the plain model, global and local attention over it, and input feeding.
Sections and equations are those of arXiv 1508.04025v5; names are the paper's. As in the authors' code there are no
biases anywhere. Scores and alignments are in ``shared/attention/alignments.py``, the stacked LSTM in
``shared/layers/lstm.py``; both have faster twins (:mod:`shared.attention.twins`).

Shape letters: B batch, S source length (end symbol included), W = S - 1 source words, T target length, N state width,
M embedding width, A key width, L layers, V target vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.alignments import Alignment, Score
from shared.decoding.protocol import select_beams, select_sources
from shared.layers.lstm import Advance, StackedLSTM, State


class Encoder(nn.Module):
    """A stacked LSTM that reads the source backwards (Sutskever et al. 2014) or forwards.

    Whatever the reading order, annotations come in the order of the sentence, so that positions p_t of local attention
    and alignments mean the same for both. The end symbol that stands after every source is not annotated, and as in the
    authors' code (``prepareData.m``) it is not read either, unless ``end_symbol`` is set.

    Args:
        vocabulary: number of source symbols.
        embedding_size: M.
        hidden_size: N.
        layers: L.
        dropout: on the input of every layer.
        reverse: whether the words are read from last to first.
        end_symbol: whether the end symbol is read after the words.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, layers: int, dropout: float, reverse: bool,
        end_symbol: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.reverse, self.end_symbol = reverse, end_symbol
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.lstm = StackedLSTM(input_size=embedding_size, hidden_size=hidden_size, layers=layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, State]:
        """Read (B, S) symbols, of which the last that ``mask`` (B, S) shows is the end symbol.

        Returns:
            Annotations h̄_s (B, W, N), their mask (B, W), and all layers' final states, (L, B, N) each.
        """
        length = mask.sum(1, keepdim=True)  # (B, 1) symbols, at least the end symbol
        position = torch.arange(source.size(1) - 1, device=source.device)  # (W,) of words and of reading steps
        padding = len(position) + 1 - length  # (B, 1) reading steps before the first word
        # The padding is in front, where an LSTM without biases stays at rest: all sentences end at the last step.
        to_word, to_step = position - padding, position + padding  # (B, W) each
        if self.reverse:
            to_word = to_step = position.flip(0).expand_as(to_word)
        words = source.gather(1, to_word.clamp(min=0))  # (B, W)
        e = self.embedding(words).masked_fill((position < padding).unsqueeze(2), 0)  # (B, W, M)
        if self.end_symbol:
            e = torch.cat((e, self.embedding(source.gather(1, length - 1))), dim=1)  # (B, S, M)
        h, state = self.lstm.after_padding(self.dropout(e.transpose(0, 1)), padding.squeeze(1))  # (W or S, B, N)
        step = to_step.clamp(max=max(len(position) - 1, 0)).unsqueeze(2).expand(-1, -1, h.size(2))  # (B, W, N)
        return h[: len(position)].transpose(0, 1).gather(1, step), position < length - 1, state


class AttentionLayer(nn.Module):
    """h̃_t = tanh(W_c [c_t; h_t]), equation (5), with c_t the context that ``alignment`` and ``score`` choose.

    Args:
        score: how well a decoder state and an annotation match (section 3.1).
        alignment: which annotations are considered (sections 3.1 and 3.2).
        hidden_size: N.
    """

    def __init__(self, *, score: Score, alignment: Alignment, hidden_size: int) -> None:
        super().__init__()
        self.score = score
        self.alignment = alignment
        self.w_c = nn.Linear(2 * hidden_size, hidden_size, bias=False)

    def forward(self, h: Tensor, state: DecoderState, t: Tensor) -> tuple[Tensor, Tensor]:
        """Decoder states h_t (B, Q, N) at target positions t, broadcastable to (B, Q), to h̃_t and weights (B, Q, W)."""
        c, a = self.alignment(self.score, h, state.keys, state.annotations, state.mask, positions=t)  # (B, Q, N)
        return torch.tanh(self.w_c(torch.cat((c, h), dim=-1))), a


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from word to word for k beams, which share annotations, keys and mask."""

    annotations: Tensor  # (B, W, N) h̄_s
    keys: Tensor  # (B, W, A) what the score needs of them
    mask: Tensor  # (B, W) true at words
    t: int  # target position, from 0
    h: Tensor  # (B, k, L, N)
    c: Tensor  # (B, k, L, N)
    h_tilde: Tensor  # (B, k, N) h̃_{t-1}, zero at the beginning


class EncoderDecoder(nn.Module):
    """All of the paper's models: without attention the baseline, with it the attentional ones.

    Args:
        source_vocabulary: number of source symbols.
        target_vocabulary: V.
        embedding_size: M (1000 in the paper).
        hidden_size: N (1000).
        layers: L (4).
        dropout: on the input of every layer (0.2, or none).
        reverse: whether the source is read backwards.
        end_symbol: whether its end symbol is read, too.
        attention: score and alignment, or None for the baseline.
        input_feeding: whether h̃_{t-1} is part of the decoder's input at t (section 3.3).
        init_range: weights start uniform in ± this (0.1).
    """

    def __init__(
        self, *, source_vocabulary: int, target_vocabulary: int, embedding_size: int, hidden_size: int, layers: int,
        dropout: float = 0.0, reverse: bool = True, end_symbol: bool = False,
        attention: tuple[Score, Alignment] | None = None, input_feeding: bool = False, init_range: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        if input_feeding and attention is None:
            raise ValueError("there is no attentional vector to feed without attention")
        self.encoder = Encoder(
            vocabulary=source_vocabulary, embedding_size=embedding_size, hidden_size=hidden_size, layers=layers,
            dropout=dropout, reverse=reverse, end_symbol=end_symbol,
        )  # fmt: skip
        self.embedding = nn.Embedding(target_vocabulary, embedding_size)
        self.lstm = StackedLSTM(
            input_size=embedding_size + input_feeding * hidden_size, hidden_size=hidden_size, layers=layers,
            dropout=dropout,
        )  # fmt: skip
        self.attention = attention and AttentionLayer(
            score=attention[0], alignment=attention[1], hidden_size=hidden_size
        )
        self.input_feeding = input_feeding
        self.w_s = nn.Linear(hidden_size, target_vocabulary, bias=False)
        self.dropout = nn.Dropout(dropout)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init_range, init_range)

    def start(self, source: Tensor, mask: Tensor) -> DecoderState:
        """Encode (B, S) source symbols under their mask (B, S); the decoder begins in the encoder's final states."""
        annotations, words, final = self.encoder(source, mask)  # (B, W, N), (B, W), (L, B, N)
        keys = annotations if self.attention is None else self.attention.score.keys(annotations)  # (B, W, A)
        h, c = (tensor.transpose(0, 1).unsqueeze(1) for tensor in final)  # (B, 1, L, N)
        return DecoderState(annotations, keys, words, 0, h, c, torch.zeros_like(h[:, :, 0]))

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing.

        Args:
            source: (B, S) symbols, the end symbol last.
            source_mask: (B, S) bool, true at words and the end symbol.
            target: (B, T) the previous word of every step, beginning with the start symbol.

        Returns:
            Logits (B, T, V) and attention weights (B, T, S), zero at the end symbol, or None for the baseline.
        """
        state = self.start(source, source_mask)
        e = self.dropout(self.embedding(target.t()))  # (T, B, M)
        advance = self.lstm.unrolled(e) if self.input_feeding else self.lstm.advance
        h_tilde, a, _ = self.write(e.unsqueeze(2), state, advance)
        return self.w_s(h_tilde), a

    def write(self, e: Tensor, state: DecoderState, advance: Advance) -> tuple[Tensor, Tensor | None, Any]:
        """The decoder, over T words of each beam.

        Without input feeding no step waits for attention, so all T words go through the LSTM, and attend, at once.

        Args:
            e: (T, B, k, M) embedded words; either T or k is 1.
            state: before them.
            advance: the LSTM, see :data:`shared.layers.lstm.Advance`.

        Returns:
            h̃ (B, T·k, N), weights over the source (B, T·k, S) if there is attention, and the LSTM's last state.
        """
        h_tilde, t, vectors, weights = state.h_tilde, state.t, [], []
        layers: Any = tuple(part.flatten(0, 1).transpose(0, 1).contiguous() for part in (state.h, state.c))
        for x in e.split(1) if self.input_feeding else (e,):
            fed = self.dropout(h_tilde).flatten(0, 1) if self.input_feeding else None  # [e_t; h̃_{t-1}] (section 3.3)
            h, layers = advance(x.flatten(1, 2), fed, layers)  # (T, B·k, N)
            h_tilde = h.unflatten(1, x.shape[1:3]).transpose(0, 1).flatten(1, 2)  # (B, T·k, N)
            if self.attention is not None:
                positions = torch.arange(t, t + len(x), device=h.device)  # those of all beams are the same
                h_tilde, a = self.attention(h_tilde, state, positions)
                weights.append(a)
            vectors.append(h_tilde)
            t += len(x)
        # Attention gives no weight to the end symbol.
        return torch.cat(vectors, 1), functional.pad(torch.cat(weights, 1), (0, 1)) if weights else None, layers

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """One word further: previous words (B, k) to log p(y_t) (B, k, V), weights (B, k, S) and the next state."""
        h_tilde, a, layers = self.write(self.embedding(tokens).unsqueeze(0), state, self.lstm.advance)  # (B, k, N)
        h, c = (part.transpose(0, 1).unflatten(0, tokens.shape) for part in layers)  # (B, k, L, N)
        log_p = torch.log_softmax(self.w_s(h_tilde), dim=-1)  # (B, k, V)
        return log_p, a, replace(state, t=state.t + 1, h=h, c=c, h_tilde=h_tilde)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        annotations, keys, mask = (
            select_sources(tensor, sources) for tensor in (state.annotations, state.keys, state.mask)
        )
        h, c, h_tilde = (select_beams(tensor, sources, beams) for tensor in (state.h, state.c, state.h_tilde))
        return DecoderState(annotations, keys, mask, state.t, h, c, h_tilde)
