"""Hierarchical attention networks (Yang, Yang, Dyer, He, Smola & Hovy 2016), and what the paper compares them with.

Sections and equations are those of the NAACL paper; names are the paper's.

Shape letters: B documents, n words of a document, M parts that a level reads (sentences, or documents), T places of the
longest part, X width of what stands there, u GRU width a direction, D annotation width (2u), C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax
from shared.tasks.classification.corpus import Classified

Pooling = Literal["attention", "words alone", "average", "maximum"]
"""How annotations become one vector: HN-ATT; not in the paper, HN-ATT whose word weights see the words alone; HN-AVE;
HN-MAX (section 3.4)."""


def sentence_sizes(text: Tensor, mask: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """How many words the sentences of all documents have, one after the other, and how many sentences a document has.

    A sentence ends with its end symbol, or where the document does; so none is empty.

    Args:
        text: (B, n) symbols, right-padded.
        mask: (B, n) bool, true at words.
        ends: the symbols that end a sentence.

    Returns:
        (M,) and (B,).
    """
    last = mask & ~nn.functional.pad(mask[:, 1:], (0, 1))
    closes = mask & torch.isin(text, ends) | last
    places = closes[mask].nonzero().squeeze(1)
    return places.diff(prepend=places.new_tensor([-1])), closes.sum(1)


class BidirectionalGRU(nn.Module):
    """h_it = [h→_it; h←_it] (sections 2.1 and 2.2, equations 1 to 4); one bias a gate, as there.

    PyTorch's unit is the paper's with z for 1 − z. Its own biases, of which it has two a gate, are left out: they are
    the weights of a further input that is always 1. A part is turned around for the backward direction, so that both
    come to padding last, and what they make of it is not used.

    Args:
        size: X.
        hidden: u.
    """

    def __init__(self, *, size: int, hidden: int) -> None:
        super().__init__()
        self.forwards, self.backwards = (nn.GRU(size + 1, hidden, bias=False, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor, sizes: Tensor) -> Tensor:
        """Parts (M, T, X), right-padded, of so many places each (M,), to annotations (M, T, D), any at padding."""
        x = torch.cat((x, x.new_ones(*x.shape[:2], 1)), dim=2)
        places = torch.arange(x.size(1), device=x.device)
        turned = torch.where(places < sizes.unsqueeze(1), sizes.unsqueeze(1) - 1 - places, places).unsqueeze(2)
        backwards, _ = self.backwards(x.take_along_dim(turned, 1))
        return torch.cat((self.forwards(x)[0], backwards.take_along_dim(turned, 1)), dim=2)


class Attention(nn.Module):
    """u_it = tanh(W h_it + b), α_it = exp(u_itᵀ u_w) / Σ_t exp(u_itᵀ u_w) (equations 5 and 6, or 8 and 9).

    Args:
        size: of what the weights depend on.
        hidden: of u_it and of the context vector u_w, which is learned with the model.
    """

    def __init__(self, *, size: int, hidden: int) -> None:
        super().__init__()
        self.w = nn.Linear(size, hidden)
        self.u_w = nn.Linear(hidden, 1, bias=False)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Weights (M, T) of annotations (M, T, size) under their mask (M, T)."""
        return masked_softmax(self.u_w(torch.tanh(self.w(h))).squeeze(2), mask)


class Level(nn.Module):
    """One level of the hierarchy: parts are read by a GRU, and their annotations become one vector.

    Args:
        size: X.
        hidden: u; u_it is as wide as an annotation, 2u.
        pooling: see :data:`Pooling`.
    """

    def __init__(self, *, size: int, hidden: int, pooling: Pooling) -> None:
        super().__init__()
        self.pooling: Pooling = pooling
        self.encoder = BidirectionalGRU(size=size, hidden=hidden)
        if pooling in ("attention", "words alone"):
            self.attention = Attention(size=2 * hidden if pooling == "attention" else size, hidden=2 * hidden)

    def forward(self, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_t α_it h_it (equations 7 and 10), or the pooled h_it, and what each place weighs in it.

        Args:
            x: what the parts consist of, one after the other, (Σ sizes, X).
            sizes: (M,).

        Returns:
            (M, D), and the weights (Σ sizes,): in a maximum a place has the share of features that are largest there.
        """
        mask = torch.arange(int(sizes.max()), device=x.device) < sizes.unsqueeze(1)  # (M, T)
        parts = x.new_zeros(*mask.shape, x.size(1))  # (M, T, X)
        parts[mask] = x  # PyTorch's pad_sequence makes a gradient as large as all parts for each of them
        h = self.encoder(parts, sizes)  # (M, T, D)
        if self.pooling == "maximum":
            largest, places = h.masked_fill(~mask.unsqueeze(2), -torch.inf).max(1)  # (M, D) each
            shares = h.new_zeros(mask.shape).scatter_add(1, places, h.new_full(places.shape, 1 / h.size(2)))
            return largest, shares[mask]
        if self.pooling == "average":
            alpha = mask / sizes.unsqueeze(1).to(h.dtype)
        else:
            alpha = self.attention(h if self.pooling == "attention" else parts, mask)
        return (alpha.unsqueeze(1) @ h).squeeze(1), alpha[mask]


class HierarchicalNetwork(nn.Module):
    """Words to sentences to a document to its class (figure 2), or flat: words to a document.

    Args:
        vocabulary: number of words.
        classes: C.
        embedding: width of a word vector.
        hidden: u, at both levels.
        pooling: of both levels; the words alone decide weights at the level of words only.
        sentences: whether there is a level of sentences; else a document is one long sentence.
        ends: the symbols that end a sentence.
        dropout: of the document's vector; the paper has none.
    """

    ends: Tensor

    def __init__(
        self, *, vocabulary: int, classes: int, embedding: int, hidden: int, pooling: Pooling, sentences: bool,
        ends: Sequence[int], dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)  # W_e
        self.words = Level(size=embedding, hidden=hidden, pooling=pooling)
        above: Pooling = "attention" if pooling == "words alone" else pooling
        self.sentences = Level(size=2 * hidden, hidden=hidden, pooling=above) if sentences else None
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * hidden, classes)  # W_c, b_c
        self.register_buffer("ends", torch.tensor(ends), persistent=False)

    def forward(self, texts: tuple[Tensor, ...], masks: tuple[Tensor, ...]) -> Classified:
        """Documents (B, n) and their mask (B, n), true at words, to the logits of equation 11 and the words' weights.

        A word weighs α_it α_i, its weight in the sentence times that of the sentence: (B, 1, n), with the sum one.
        """
        (text,), (mask,) = texts, masks
        sizes, counts = sentence_sizes(text, mask, self.ends)
        if self.sentences is None:
            sizes = mask.sum(1)
        v, weights = self.words(self.embedding(text[mask]), sizes)  # (M, D), (words,)
        if self.sentences is not None:
            v, of_sentences = self.sentences(v, counts)  # (B, D), (M,)
            weights = weights * of_sentences.repeat_interleave(sizes)
        a = weights.new_zeros(mask.shape).masked_scatter(mask, weights)  # (B, n)
        return Classified(self.output(self.dropout(v)), (a.unsqueeze(1),))
