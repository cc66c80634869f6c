"""Show, attend and tell: neural image caption generation with visual attention (Xu et al.; ICML 2015).

The caption generator, top to bottom; how it looks at the picture is in :mod:`.attention`, and what makes it learn to,
besides the likelihood of captions, in :mod:`.learning`. The LSTM's unit and products have faster twins
(:mod:`shared.layers.lstm`). Sections and equations are those of arXiv 1502.03044v3; names are the paper's. What the
paper leaves open is as in its authors' program: ``program`` of paper.yaml.

Shape letters: B batch, k beams (1 in training), T caption length, L places (196 in the paper), D annotation width
(512), m word width, n state width, A width of the attention's layer, K vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from replications.show_attend_tell.attention import Attention, Glimpse, Image, Look
from replications.show_attend_tell.learning import Reinforce, attention_supervision, doubly_stochastic_penalty
from shared.data.tokenizers import BOS, PAD
from shared.decoding.protocol import select_beams, select_sources
from shared.layers.lstm import Product, lstm_unit, product_with
from shared.tasks.captioning.corpus import Captioned


class InitialState(nn.Module):
    """h_0 = f_init,h(ā), c_0 = f_init,c(ā) of the mean annotation ā (section 3.1.2).

    Args:
        annotation_size: D.
        hidden_size: n.
        layers: of each perceptron; both share all but the last, which are rectified.
        dropout: after the shared layers.
    """

    def __init__(self, *, annotation_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.shared = nn.ModuleList(nn.Linear(annotation_size, annotation_size) for _ in range(layers - 1))
        self.f_h = nn.Linear(annotation_size, hidden_size)
        self.f_c = nn.Linear(annotation_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """(B, L, D) to h_0 and c_0, (B, n) each."""
        mean = a.mean(1)
        for layer in self.shared:
            mean = self.dropout(torch.relu(layer(mean)))
        return torch.tanh(self.f_h(mean)), torch.tanh(self.f_c(mean))


class DeepOutput(nn.Module):
    """p(y_t) ∝ exp(L_o (E y_{t-1} + L_h h_t + L_z ẑ_t)) (equation 7).

    Args:
        tanh: whether there is one around the sum, which the equation has not.
        dropout: on h_t and before L_o.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, annotation_size: int, dropout: float,
        tanh: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.l_h = nn.Linear(hidden_size, embedding_size)
        self.l_z = nn.Linear(annotation_size, embedding_size)
        self.l_o = nn.Linear(embedding_size, vocabulary)
        self.dropout = nn.Dropout(dropout)
        self.bounded = nn.Tanh() if tanh else nn.Identity()

    def forward(self, e_y: Tensor, h: Tensor, z_hat: Tensor) -> Tensor:
        """Logits: E y_{t-1} (…, m), h_t (…, n), ẑ_t (…, D) to (…, K)."""
        summed = e_y + self.l_h(self.dropout(h)) + self.l_z(z_hat)
        return self.l_o(self.dropout(self.bounded(summed)))


@dataclass(frozen=True)
class DecoderState:
    """What decoding carries from word to word for k beams, which share the picture."""

    image: Image
    h: Tensor  # (B, k, n)
    c: Tensor  # (B, k, n)
    products: tuple[Product, Product]  # with h_{t-1} and with ẑ_t


class Seen(NamedTuple):
    """What a step leaves: the next state, its view of the picture, ẑ_t after the gate, and the gate."""

    h: Tensor  # (B, k, n)
    c: Tensor  # (B, k, n)
    look: Look
    z_hat: Tensor  # (B, k, D) β_t φ({a_i}, {α_i})
    beta: Tensor | None  # (B, k)


class Decoder(nn.Module):
    """The LSTM, which looks before every word (equations 1 to 3), and the gate β of section 4.2.1.

    (i, f, g, o) = T [E y_{t-1}; h_{t-1}; ẑ_t] with ẑ_t = β_t φ({a_i}, {α_i}) and β_t = σ(f_β(h_{t-1})).

    Args:
        embedding_size: m.
        hidden_size: n.
        glimpse: φ.
        gate: whether there is a β.
    """

    def __init__(self, *, embedding_size: int, hidden_size: int, glimpse: Glimpse, gate: bool) -> None:
        super().__init__()
        gates, context = 4 * hidden_size, glimpse.annotation_size
        self.glimpse = glimpse
        self.from_y = nn.Linear(embedding_size, gates)  # T in three parts; all parts have the order i, f, g, o
        self.from_h = nn.Parameter(torch.empty(gates, hidden_size))
        self.from_z = nn.Parameter(torch.empty(gates, context))
        self.w_d = nn.Parameter(torch.empty(glimpse.query_size, hidden_size))
        self.f_beta = nn.Linear(hidden_size, 1) if gate and context else None

    def products(self) -> tuple[Product, Product]:
        """With h_{t-1}, which W_d, T and f_β all multiply, and with ẑ_t: for the steps of one pass over captions."""
        of_h = [self.w_d, self.from_h] + ([] if self.f_beta is None else [self.f_beta.weight])
        return product_with(torch.cat(of_h).t()), product_with(self.from_z.t())

    def step(self, x: Tensor, state: DecoderState, drawn: Tensor | None = None) -> Seen:
        """One step of the recurrence.

        Args:
            x: (B, k, 4n) the part of T that meets E y_{t-1}, bias included.
            state: the one before.
            drawn: (B, 1) bool, in which pictures hard attention draws a place.
        """
        (times_h, times_z), shape = state.products, x.shape[:2]
        of_h = times_h(state.h.flatten(0, 1)).unflatten(0, shape)
        query, recurrent, f_beta = of_h.tensor_split((len(self.w_d), len(self.w_d) + len(self.from_h)), dim=-1)
        look = self.glimpse(query, state.image, drawn)  # equations 4 to 6
        z_hat, beta = look.z_hat, None
        if self.f_beta is not None:
            beta = torch.sigmoid(f_beta.squeeze(2) + self.f_beta.bias)  # (B, k)
            z_hat = beta.unsqueeze(2) * z_hat
        gates = x + recurrent
        if z_hat.size(2):
            gates = gates + times_z(z_hat.flatten(0, 1)).unflatten(0, shape)  # equation 1
        h, c = lstm_unit(gates.flatten(0, 1), state.c.flatten(0, 1))  # equations 2 and 3
        return Seen(h.unflatten(0, shape), c.unflatten(0, shape), look, z_hat, beta)


class CaptionGenerator(nn.Module):
    """Annotation vectors in, a caption out.

    Args:
        vocabulary: K.
        embedding_size: m.
        hidden_size: n.
        annotation_size: D.
        glimpse: φ, soft or hard attention or none.
        gate: whether there is a β (section 4.2.1).
        initial_layers: of the perceptrons for h_0 and c_0.
        dropout: see :class:`InitialState` and :class:`DeepOutput`.
        tanh: see :class:`DeepOutput`.
        penalty: λ of doubly stochastic attention (equation 14).
        penalty_mean: see :func:`.learning.doubly_stochastic_penalty`.
        supervision: weight of what attention should have been (Liu et al. 2017), where that is known.
        reinforce: how hard attention learns; only for that.
        init_std: standard deviation of the initial weights; None for 1/√(inputs of a unit).
        word_std: the same of word vectors.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, hidden_size: int, annotation_size: int, glimpse: Glimpse,
        gate: bool, initial_layers: int, dropout: float, tanh: bool, penalty: float = 0.0,
        penalty_mean: Literal["captions", "places"] = "captions", supervision: float = 0.0,
        reinforce: Reinforce | None = None, init_std: float | None = 0.01, word_std: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__()
        sizes: dict[str, Any] = {"embedding_size": embedding_size, "hidden_size": hidden_size}
        # The zero vector stands before the first word, not the embedding of a start symbol.
        self.embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=BOS)  # E
        self.initial = InitialState(
            annotation_size=annotation_size, hidden_size=hidden_size, layers=initial_layers, dropout=dropout
        )
        self.decoder = Decoder(glimpse=glimpse, gate=gate, **sizes)
        self.output = DeepOutput(
            vocabulary=vocabulary, annotation_size=glimpse.annotation_size, dropout=dropout, tanh=tanh, **sizes
        )
        self.penalty, self.penalty_mean = penalty, penalty_mean
        self.supervision, self.reinforce = supervision, reinforce
        self.reset_parameters(init_std, word_std)

    @torch.no_grad()
    def reset_parameters(self, std: float | None, word_std: float) -> None:
        """Biases 0; square matrices but W_c, and each gate's of h_{t-1}, orthogonal; others normal."""
        glimpse = self.decoder.glimpse
        w_c = glimpse.w_c[0].weight if isinstance(glimpse, Attention) else None
        for weight in self.parameters():
            if weight.dim() == 1:
                weight.zero_()
            elif weight is self.decoder.from_h:
                for gate in weight.chunk(4):
                    nn.init.orthogonal_(gate)
            elif weight.size(0) == weight.size(1) and weight is not w_c:
                nn.init.orthogonal_(weight)
            else:
                weight.normal_(std=max(1, weight.size(1)) ** -0.5 if std is None else std)
        self.embedding.weight.normal_(std=word_std)[BOS] = 0

    def start(self, features: Tensor) -> DecoderState:
        """The state before the first word, with one beam, of annotation vectors (B, L, D)."""
        h, c = self.initial(features)
        image = Image(features, self.decoder.glimpse.keys(features))
        return DecoderState(image, h.unsqueeze(1), c.unsqueeze(1), self.decoder.products())

    def forward(self, features: Tensor, captions: Tensor, regions: Tensor | None = None) -> Captioned:
        """Teacher forcing.

        Args:
            features: (B, L, D) annotation vectors.
            captions: (B, T) words and the end symbol, right-padded.
            regions: (B, T, L) where attention should be, with zero rows at words that say nothing of that.

        Returns:
            Costs, attention α (B, T, L) and gates β (B, T), both going on in the padding; in training also what is
            added to each caption's cost.
        """
        mask = captions != PAD
        state = self.start(features)
        e_y = self.embedding(functional.pad(captions[:, :-1], (1, 0), value=BOS))  # (B, T, m)
        drawn = self.reinforce.toss(len(captions), mask.device) if self.training and self.reinforce else None
        seen: list[Seen] = []
        for x in self.decoder.from_y(e_y).split(1, dim=1):  # (B, 1, 4n)
            seen.append(self.decoder.step(x, state, drawn))
            state = replace(state, h=seen[-1].h, c=seen[-1].c)
        h, z_hat = (torch.cat(parts, dim=1) for parts in zip(*((step.h, step.z_hat) for step in seen), strict=True))
        logits = self.output(e_y, h, z_hat).to(e_y.dtype).flatten(0, 1)  # (B·T, K), in full precision
        nats = functional.cross_entropy(logits, captions.flatten(), reduction="none", ignore_index=PAD)
        nats = nats.view_as(captions)
        looks = [step.look for step in seen]
        log_alpha = _joined([look.log_alpha for look in looks])
        auxiliary = None
        if self.training and log_alpha is not None:
            s = _joined([look.s for look in looks])
            auxiliary = self._auxiliary(nats, log_alpha, s, drawn, mask, regions)
        alpha = None if log_alpha is None else log_alpha.exp()
        return Captioned(nats, alpha, _joined([step.beta for step in seen]), auxiliary)

    def _auxiliary(
        self, nats: Tensor, log_alpha: Tensor, s: Tensor | None, drawn: Tensor | None, mask: Tensor,
        regions: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """(B,) what is added to log-likelihood: equation 14, the learning rule of 4.1, supervised attention."""
        auxiliary = nats.new_zeros(len(nats))
        if self.penalty:
            auxiliary = auxiliary + self.penalty * doubly_stochastic_penalty(log_alpha.exp(), mask, self.penalty_mean)
        if self.supervision and regions is not None:
            auxiliary = auxiliary + self.supervision * attention_supervision(log_alpha, regions)
        if self.reinforce is not None and s is not None and drawn is not None:
            auxiliary = auxiliary + self.reinforce(-nats.sum(1), log_alpha, s, drawn, mask)
        return auxiliary

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, DecoderState]:
        """One word further: previous words (B, k) to log p(y_t) (B, k, K), α_t (B, k, L) and the next state."""
        e_y = self.embedding(tokens)  # (B, k, m)
        seen = self.decoder.step(self.decoder.from_y(e_y), state)
        log_p = torch.log_softmax(self.output(e_y, seen.h, seen.z_hat), dim=-1)
        alpha = None if seen.look.log_alpha is None else seen.look.log_alpha.exp()
        return log_p, alpha, replace(state, h=seen.h, c=seen.c)

    def reorder(self, state: DecoderState, sources: Tensor | None, beams: Tensor) -> DecoderState:
        """Keep some pictures and beams; see :class:`shared.decoding.protocol.IncrementalDecoder`."""
        image = Image(*(select_sources(tensor, sources) for tensor in state.image))
        h, c = (select_beams(tensor, sources, beams) for tensor in (state.h, state.c))
        return replace(state, image=image, h=h, c=c)


def _joined(steps: list[Tensor | None]) -> Tensor | None:
    """(B, 1, …) of every step to (B, T, …); None where the steps have none."""
    there = [step for step in steps if step is not None]
    return torch.cat(there, dim=1) if there else None
