"""A structured self-attentive sentence embedding (Lin, Feng, dos Santos, Yu, Xiang, Zhou, Bengio; ICLR 2017).

The self-attentive encoder, the encoders that it is compared with, and the heads above them. The bidirectional LSTM is
in ``shared/layers/lstm.py``; the penalty of section 2.2 is in ``shared/attention/structured.py``, for evaluation
measures it of every model. Sections and equations are those of arXiv 1703.03130v1; names are the paper's.

Shape letters: B batch, n words, d word vector, u LSTM width per direction, D annotation width (2u), r rows of A,
C classes, b hidden units of the MLP.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from shared.attention.softmax import masked_softmax
from shared.attention.structured import redundancy_penalty
from shared.errors import ReplicationError
from shared.layers.lstm import BidirectionalLSTM
from shared.tasks.classification.corpus import Classified

Embedded = tuple[Tensor, Tensor | None]
"""The embedding M (B, r, D) of a text, and what its words weigh in it, A (B, r, n), if that can be said."""


def penalty_over_words(a: Tensor) -> Tensor:
    """The mean of the squares of the n × n entries of AᵀA − I, padding included: weights A (B, r, n) to (B,).

    Since ‖AᵀA‖ = ‖AAᵀ‖ and both have one trace, it is P + n − r over n²: its gradient is that of P, divided by n².
    """
    rows, words = a.shape[1:]
    return (redundancy_penalty(a) + words - rows) / max(1, words) ** 2


class StructuredSelfAttention(nn.Module):
    """A = softmax(W_s2 tanh(W_s1 Hᵀ)) over the words (equation 6); neither product has a bias.

    Args:
        annotation_size: D, the width of an annotation h_t.
        attention_size: d_a.
        rows: r, how many weightings there are.
    """

    def __init__(self, *, annotation_size: int, attention_size: int, rows: int) -> None:
        super().__init__()
        self.w_s1 = nn.Linear(annotation_size, attention_size, bias=False)
        self.w_s2 = nn.Linear(attention_size, rows, bias=False)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Weights A (B, r, n): of annotations H (B, n, D) under their mask (B, n), true at words."""
        scores = self.w_s2(torch.tanh(self.w_s1(h))).transpose(1, 2)  # (B, r, n)
        return masked_softmax(scores, mask.unsqueeze(1))


class Encoder(nn.Module, ABC):
    """From the word vectors S of a text to its embedding M, a matrix.

    Attributes:
        rows: r; 1 for an encoder whose embedding is a vector.
        annotation_size: D.
    """

    rows = 1
    annotation_size: int

    @abstractmethod
    def forward(self, s: Tensor, mask: Tensor) -> Embedded:
        """M and A of word vectors S (B, n, d), right-padded, under their mask (B, n), true at words.

        A text without words, or a row that is only padding, has M = 0 and A = 0, and no gradient.
        """


class LSTMEncoder(Encoder):
    """An encoder that weighs or pools the annotations of a bidirectional LSTM.

    Args:
        embedding_size: d.
        hidden_size: u.
    """

    def __init__(self, *, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.annotation_size = 2 * hidden_size
        self.lstm = BidirectionalLSTM(input_size=embedding_size, hidden_size=hidden_size)

    def annotations(self, s: Tensor, mask: Tensor) -> Tensor:
        """H (B, n, 2u), h_t = [LSTM→(w_t, h→_{t-1}); LSTM←(w_t, h←_{t+1})] (equations 1 to 4); zero at padding.

        Args:
            s: (B, n, d) word vectors, right-padded.
            mask: (B, n) bool, true at words.
        """
        return self.lstm(s, mask)


class SelfAttentiveEncoder(LSTMEncoder):
    """M = A H over the annotations H of a bidirectional LSTM (equations 1 to 7).

    Args:
        embedding_size: d.
        hidden_size: u.
        attention_size: d_a.
        rows: r.
    """

    def __init__(self, *, embedding_size: int, hidden_size: int, attention_size: int, rows: int) -> None:
        super().__init__(embedding_size=embedding_size, hidden_size=hidden_size)
        self.rows = rows
        self.attention = StructuredSelfAttention(
            annotation_size=self.annotation_size, attention_size=attention_size, rows=rows
        )

    def forward(self, s: Tensor, mask: Tensor) -> Embedded:
        """M (B, r, 2u) and the annotation matrix A (B, r, n)."""
        h = self.annotations(s, mask)  # (B, n, 2u)
        a = self.attention(h, mask)  # (B, r, n)
        return a @ h, a


class MaxPooledLSTM(LSTMEncoder):
    """The baseline: every feature's largest value over the words (section 4.1)."""

    def forward(self, s: Tensor, mask: Tensor) -> Embedded:
        """M (B, 1, 2u); a word weighs the share of the features that are largest at it."""
        return max_pooled(self.annotations(s, mask), mask)


class MaxPooledCNN(Encoder):
    """The other baseline: one layer of convolution over the words, then as above (section 4.1).

    Args:
        embedding_size: d.
        features: D; the paper does not say how many it has.
        window: words that a feature sees, an odd number; the paper does not say how many.
    """

    def __init__(self, *, embedding_size: int, features: int, window: int) -> None:
        super().__init__()
        self.annotation_size = features
        self.convolution = nn.Conv1d(embedding_size, features, window, padding=window // 2)

    def forward(self, s: Tensor, mask: Tensor) -> Embedded:
        """M (B, 1, D); a word weighs the share of the features that are largest around it."""
        words = (s * mask.unsqueeze(-1)).transpose(1, 2)  # (B, d, n): a window reaches into nothing but zeros
        m, shares = max_pooled(self.convolution(words).transpose(1, 2), mask)
        return torch.relu(m), shares  # as max(relu(x)), in which features that fire nowhere would have no place


def max_pooled(h: Tensor, mask: Tensor) -> Embedded:
    """Features (B, n, D) and their mask (B, n) to their maxima (B, 1, D) and where these lie, as shares (B, 1, n).

    Both are zero for a text without words.
    """
    if h.size(1) == 0:
        return h.sum(1, keepdim=True), h.new_zeros(len(h), 1, 0)
    lowest = torch.finfo(h.dtype).min
    highest, place = h.masked_fill(~mask.unsqueeze(-1), lowest).max(1)  # (B, D) each
    words = mask.any(1, keepdim=True)  # (B, 1)
    shares = torch.zeros_like(mask, dtype=highest.dtype)  # (B, n)
    shares.scatter_add_(1, place, torch.full_like(highest, 1 / highest.size(1)).detach())
    return highest.masked_fill(~words, 0).unsqueeze(1), shares.masked_fill(~words, 0).unsqueeze(1)


class PrunedLayer(nn.Module):
    """The hidden layer of the MLP with most of its weights left out (appendix A, from memory).

    Every row of M has p hidden units that see that row only, and every column q units that see that column only:
    rD(p + q) weights in place of the rD(rp + Dq) of a dense layer with as many units.

    Args:
        rows: r.
        annotation_size: D.
        p: hidden units of a row.
        q: hidden units of a column; there may be none.
    """

    def __init__(self, *, rows: int, annotation_size: int, p: int, q: int) -> None:
        super().__init__()
        self.of_rows = nn.Parameter(torch.empty(rows, annotation_size, p))
        self.of_columns = nn.Parameter(torch.empty(annotation_size, rows, q))
        self.size = rows * p + annotation_size * q
        self.bias = nn.Parameter(torch.zeros(self.size))
        for weight in (self.of_rows, self.of_columns):  # as nn.Linear has it, by the number of inputs of a unit
            nn.init.uniform_(weight, -(weight.size(1) ** -0.5), weight.size(1) ** -0.5)

    def forward(self, m: Tensor) -> Tensor:
        """(B, r, D) to (B, rp + Dq)."""
        rows = torch.einsum("brd,rdp->brp", m, self.of_rows).flatten(1)
        columns = torch.einsum("brd,drq->bdq", m, self.of_columns).flatten(1)
        return torch.cat((rows, columns), dim=1) + self.bias


class GatedRelation(nn.Module):
    """How two embeddings relate: F_r = F_h ∘ F_p, row by row (section 4.3), without biases.

    Args:
        rows: r.
        annotation_size: D.
        relation_size: width of a row of F_r.
    """

    def __init__(self, *, rows: int, annotation_size: int, relation_size: int) -> None:
        super().__init__()
        self.w_fh = nn.Parameter(torch.empty(rows, annotation_size, relation_size))
        self.w_fp = nn.Parameter(torch.empty(rows, annotation_size, relation_size))
        for weight in (self.w_fh, self.w_fp):
            nn.init.uniform_(weight, -(annotation_size**-0.5), annotation_size**-0.5)

    def forward(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        """M_p and M_h (B, r, D) to F_r (B, r, relation_size); every row has matrices of its own."""
        f_h = torch.einsum("brd,rdf->brf", hypothesis, self.w_fh)
        f_p = torch.einsum("brd,rdf->brf", premise, self.w_fp)
        return f_h * f_p


class TextClassifier(nn.Module):
    """Word vectors, an encoder and an MLP with one hidden layer of rectified units (section 4).

    Args:
        vocabulary: number of words.
        embedding_size: d.
        encoder: shared by both texts where there are two.
        hidden: from M, or of two texts from F_r, to b hidden units.
        hidden_size: b.
        classes: C.
        dropout: of the hidden units; the paper says only that it is "on the MLP".
        word_std: standard deviation of the initial word vectors, in place of the paper's from word2vec and GloVe.
        relation: of two texts.
        penalty: the coefficient of P (section 2.2).
        over_words: whether P is :func:`penalty_over_words`.
    """

    def __init__(
        self, *, vocabulary: int, embedding_size: int, encoder: Encoder, hidden: nn.Module, hidden_size: int,
        classes: int, dropout: float, word_std: float = 0.1, relation: GatedRelation | None = None,
        penalty: float = 0.0, over_words: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        nn.init.normal_(self.embedding.weight, std=word_std)
        self.encoder, self.relation, self.penalty = encoder, relation, penalty
        self.p = penalty_over_words if over_words else redundancy_penalty
        self.mlp = nn.Sequential(hidden, nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, classes))

    def forward(self, texts: tuple[Tensor, ...], masks: tuple[Tensor, ...]) -> Classified:
        """Logits (B, C) of one text each, or of two in the order premise, hypothesis.

        Args:
            texts: (B, n) symbols each, right-padded.
            masks: (B, n) bool each, true at words.

        Returns:
            The logits, A (B, r, n) of each text, and the penalty times its coefficient (B,), summed over the texts.

        Raises:
            ReplicationError: there are more or fewer texts than the model relates.
        """
        if len(texts) != 1 + (self.relation is not None):
            raise ReplicationError(
                "a model of two texts needs 'relation' in its model section, and a model of one text must not have it."
            )
        embedded = [self.encoder(self.embedding(text), mask) for text, mask in zip(texts, masks, strict=True)]
        m = [m for m, _ in embedded]
        a = tuple(a for _, a in embedded if a is not None)
        logits = self.mlp(m[0] if self.relation is None else self.relation(*m))
        p = torch.stack([self.p(weights) for weights in a]).sum(0) if self.penalty else None  # (B,)
        return Classified(logits, a, None if p is None else self.penalty * p)
