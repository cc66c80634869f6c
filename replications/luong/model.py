"""Effective approaches to attention-based neural machine translation (Luong, Pham, Manning; EMNLP 2015).

The whole encoder-decoder, top to bottom: the plain model, global and local attention over it, and input feeding.
Sections and equations are those of arXiv 1508.04025v5; names are the paper's. As in the authors' code there are no
biases anywhere. The functions :func:`read` and :func:`write` are the paper's equations, one word at a time; unless
``fused`` is turned off, twins with the same weights and results run instead: the LSTMs of
``shared/layers/stacked_lstm.py``, and the scores and alignments of ``shared/attention``.

Shape letters: B batch, S source length (end symbol included), W = S - 1 source words, T target length, N state width,
M embedding width, A key width, L layers, V target vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.alignments import Alignment, LocalAlignment, LocalPredictive
from shared.attention.scores import ConcatScore, DotScore, GeneralScore, LocationScore, Score
from shared.attention.softmax import masked_softmax
from shared.decoding.protocol import select_beams, select_sources
from shared.layers.stacked_lstm import StackedLSTM, State

Layers = list[tuple[Tensor, Tensor]]
"""Hidden and cell state of every layer, L pairs of (B, N) each."""


def stacked_unit(lstm: StackedLSTM, x: Tensor, state: Layers) -> Layers:
    """One step of the stacked LSTM (section 2, after Zaremba et al. 2014): input (B, I) and states to the next states.

    Of each layer, whose input x is what is below it: [i; f; g; o] = W_x x + W_h h, c′ = σ(f) ∘ c + σ(i) ∘ tanh(g),
    h′ = σ(o) ∘ tanh(c′). Dropout acts on what goes up, not on what goes on in time.
    """
    after: Layers = []
    for layer, (h, c) in enumerate(state):
        if layer:
            x = functional.dropout(after[-1][0], lstm.dropout, lstm.training)
        w_x, w_h = getattr(lstm, f"weight_ih_l{layer}"), getattr(lstm, f"weight_hh_l{layer}")  # (4N, I), (4N, N)
        i, f, g, o = (x @ w_x.t() + h @ w_h.t()).chunk(4, dim=-1)  # (B, N) each
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        after.append((torch.sigmoid(o) * torch.tanh(c), c))
    return after


def read(lstm: StackedLSTM, x: Tensor, padding: Tensor) -> tuple[Tensor, State]:
    """The encoder's LSTM over (S, B, M), from zero states after (B,) steps: (S, B, N), and all layers' final states."""
    zero = x.new_zeros(x.size(1), lstm.hidden_size)
    state, top = [(zero, zero)] * lstm.num_layers, []
    for s, x_s in enumerate(x):
        rest = (padding > s).unsqueeze(1)  # (B, 1)
        state = [(h.masked_fill(rest, 0), c.masked_fill(rest, 0)) for h, c in stacked_unit(lstm, x_s, state)]
        top.append(state[-1][0])
    return torch.stack(top), (torch.stack([h for h, _ in state]), torch.stack([c for _, c in state]))


def scores(score: Score, h: Tensor, h_bar: Tensor) -> Tensor:
    """score(h_t, h̄_s) of section 3.1: decoder states (B, N) and annotations (B, W, N) to (B, W)."""
    match score:
        case DotScore():  # h_tᵀ h̄_s
            return (h_bar @ h.unsqueeze(2)).squeeze(2)
        case GeneralScore():  # h_tᵀ W_a h̄_s
            return (h_bar @ (h @ score.w_a).unsqueeze(2)).squeeze(2)
        case ConcatScore():  # v_aᵀ tanh(W_a [h_t; h̄_s]), the halves of W_a being w_a and u_a
            return torch.tanh((h @ score.w_a).unsqueeze(1) + h_bar @ score.u_a) @ score.v_a
        case LocationScore():  # W_a h_t, equation (8); no weight for words past the last row of W_a
            words, rows = h_bar.size(1), score.w_a.size(1)
            return functional.pad(h @ score.w_a, (0, max(words - rows, 0)), value=-torch.inf)[:, :words]
    raise TypeError(f"{type(score).__name__} is none of the paper's scores.")


def align(score: Score, alignment: Alignment, h: Tensor, h_bar: Tensor, mask: Tensor, t: int) -> Tensor:
    """The weights a_t of one target position t, from 0: global (equation 7), local-m or local-p (section 3.2).

    Args:
        score: compares states and annotations.
        alignment: which annotations are considered.
        h: (B, N) h_t.
        h_bar: (B, W, N) annotations.
        mask: (B, W) bool, true at words.
        t: the target position.

    Returns:
        (B, W).
    """
    e = scores(score, h, h_bar)
    if not isinstance(alignment, LocalAlignment):
        return masked_softmax(e, mask)
    s = torch.arange(1, h_bar.size(1) + 1, device=h.device)  # (W,) source positions, from 1
    length = mask.sum(1, keepdim=True)  # (B, 1) S
    p = length.clamp(min=1, max=t + 1).to(h)  # local-m: p_t = t, at most S
    if isinstance(alignment, LocalPredictive):
        p = length * torch.sigmoid(torch.tanh(h @ alignment.w_p) @ alignment.v_p).unsqueeze(1)  # equation (9)
    window = (s - p.detach().floor().clamp(min=1)).abs() <= alignment.window  # (B, W) [p_t - D, p_t + D]
    a = masked_softmax(e, mask & window)
    if isinstance(alignment, LocalPredictive) and alignment.gaussian:
        a = a * torch.exp(-((s - p) ** 2) / (2 * alignment.sigma**2))  # equation (10), σ = D / 2
    return a


def write(model: EncoderDecoder, e: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None]:
    """The decoder, word by word: embedded words (T, B, M) to h̃ (B, T, N) and, if there is attention, a (B, T, W)."""
    layers = list(zip(state.h[:, 0].unbind(1), state.c[:, 0].unbind(1), strict=True))
    h_tilde, vectors, weights = state.h_tilde[:, 0], [], []
    for t, x in enumerate(e):
        if model.input_feeding:
            x = torch.cat((x, model.dropout(h_tilde)), dim=-1)  # [e_t; h̃_{t-1}] (section 3.3)
        layers = stacked_unit(model.lstm, x, layers)
        h_tilde = h = layers[-1][0]
        if model.attention is not None:
            attention = model.attention
            a = align(attention.score, attention.alignment, h, state.annotations, state.mask, t)
            c = (a.unsqueeze(1) @ state.annotations).squeeze(1)  # c_t = Σ_s a_t(s) h̄_s
            h_tilde = torch.tanh(torch.cat((c, h), dim=-1) @ attention.w_c.weight.t())  # equation (5)
            weights.append(a)
        vectors.append(h_tilde)
    return torch.stack(vectors, dim=1), torch.stack(weights, dim=1) if weights else None


class Encoder(nn.Module):
    """A stacked LSTM that reads the source backwards (Sutskever et al. 2014) or forwards, then the end symbol.

    Whatever the reading order, annotations come in the order of the sentence, so that positions p_t of local attention
    and alignments mean the same for both. The end symbol is not annotated.

    Args:
        vocabulary: number of source symbols.
        embedding_size: M.
        hidden_size: N.
        layers: L.
        dropout: on the input of every layer.
        reverse: whether the words are read from last to first.

    Attributes:
        fused: whether ``lstm`` itself runs in place of :func:`read`.
    """

    fused = True

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, layers: int, dropout: float, reverse: bool
    ) -> None:  # fmt: skip
        super().__init__()
        self.reverse = reverse
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
        end = self.embedding(source.gather(1, length - 1))  # (B, 1, M)
        x = self.dropout(torch.cat((e, end), dim=1).transpose(0, 1))  # (S, B, M)
        rest = padding.squeeze(1)  # (B,)
        h, state = self.lstm.after_padding(x, rest) if self.fused else read(self.lstm, x, rest)  # (S, B, N)
        step = to_step.clamp(max=max(len(position) - 1, 0)).unsqueeze(2).expand(-1, -1, h.size(2))  # (B, W, N)
        return h[:-1].transpose(0, 1).gather(1, step), position < length - 1, state


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
        attention: score and alignment, or None for the baseline.
        input_feeding: whether h̃_{t-1} is part of the decoder's input at t (section 3.3).
        init_range: weights start uniform in ± this (0.1).

    Attributes:
        fused: whether the decoder's twins run in place of :func:`write`.
    """

    fused = True

    def __init__(
        self, *, source_vocabulary: int, target_vocabulary: int, embedding_size: int, hidden_size: int, layers: int,
        dropout: float = 0.0, reverse: bool = True, attention: tuple[Score, Alignment] | None = None,
        input_feeding: bool = False, init_range: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__()
        if input_feeding and attention is None:
            raise ValueError("there is no attentional vector to feed without attention")
        self.encoder = Encoder(
            vocabulary=source_vocabulary, embedding_size=embedding_size, hidden_size=hidden_size, layers=layers,
            dropout=dropout, reverse=reverse,
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
        if not self.fused:
            h_tilde, a = write(self, e, state)  # (B, T, N), (B, T, W)
        elif self.input_feeding:
            h_tilde, a = self._unroll_feeding(e, state)
        else:
            h_tilde, a = self._unroll(e, state)
        return self.w_s(h_tilde), _with_end(a)

    def _unroll(self, e: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None]:
        """Without input feeding no step waits for attention: one fused call, and attention for all steps at once."""
        h, _ = self.lstm(e, _per_layer(state))  # (T, B, N)
        h = h.transpose(0, 1)  # (B, T, N)
        if self.attention is None:
            return h, None
        h_tilde, a = self.attention(h, state, torch.arange(h.size(1), device=h.device))
        return h_tilde, a

    def _unroll_feeding(self, e: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """With it the decoder's input at t is [e_t; h̃_{t-1}], so the steps stay a loop."""
        assert self.attention is not None
        loop = self.lstm.unrolled(e)
        layers = list(zip(*(tensor.unbind(0) for tensor in _per_layer(state)), strict=True))  # L of (B, N), (B, N)
        h_tilde, vectors, weights = state.h_tilde[:, 0], [], []
        for t, position in enumerate(torch.arange(len(e), device=e.device).split(1)):
            layers = loop.step(t, self.dropout(h_tilde), layers)
            vector, a = self.attention(layers[-1][0].unsqueeze(1), state, position)  # (B, 1, N), (B, 1, W)
            h_tilde = vector[:, 0]
            vectors.append(vector)
            weights.append(a)
        return torch.cat(vectors, dim=1), torch.cat(weights, dim=1)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """One word further: previous words (B, k) to log p(y_t) (B, k, V), weights (B, k, S) and the next state."""
        e = self.embedding(tokens)  # (B, k, M)
        x = torch.cat((e, state.h_tilde), dim=-1) if self.input_feeding else e  # (B, k, I)
        h, (h_n, c_n) = self.lstm(x.flatten(0, 1).unsqueeze(0), _per_layer(state))  # (1, B·k, N), (L, B·k, N)
        h_tilde, a = h.view(*tokens.shape, -1), None  # (B, k, N)
        if self.attention is not None:
            h_tilde, a = self.attention(h_tilde, state, torch.tensor([state.t], device=h.device))
        log_p = torch.log_softmax(self.w_s(h_tilde), dim=-1)  # (B, k, V)
        h, c = (tensor.transpose(0, 1).unflatten(0, tokens.shape) for tensor in (h_n, c_n))  # (B, k, L, N)
        return log_p, _with_end(a), replace(state, t=state.t + 1, h=h, c=c, h_tilde=h_tilde)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some sources and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        annotations, keys, mask = (
            select_sources(tensor, sources) for tensor in (state.annotations, state.keys, state.mask)
        )
        h, c, h_tilde = (select_beams(tensor, sources, beams) for tensor in (state.h, state.c, state.h_tilde))
        return DecoderState(annotations, keys, mask, state.t, h, c, h_tilde)


def _per_layer(state: DecoderState) -> State:
    """The recurrent states as an LSTM wants them: (L, B·k, N) each."""
    h, c = (tensor.flatten(0, 1).transpose(0, 1).contiguous() for tensor in (state.h, state.c))
    return h, c


def _with_end(a: Tensor | None) -> Tensor | None:
    """Weights over words (B, Q, W) to weights over the source (B, Q, S): none on its end symbol."""
    return None if a is None else nn.functional.pad(a, (0, 1))
