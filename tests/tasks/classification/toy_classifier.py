"""A classifier small enough to be trained in a test, and texts for it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from shared.data.ragged import RaggedArray
from shared.tasks.classification.corpus import Classified, ClassifiedText

VOCABULARY, CLASSES = 12, 3


def random_texts(count: int, seed: int) -> ClassifiedText:
    """Texts of ordinary words with one marker, 4, 5 or 6, somewhere; which it is is the class."""
    generator = np.random.default_rng(seed)
    lines = [generator.integers(4 + CLASSES, VOCABULARY, generator.integers(2, 7)).tolist() for _ in range(count)]
    labels = generator.integers(0, CLASSES, count)
    for line, label in zip(lines, labels, strict=True):
        line.insert(int(generator.integers(len(line) + 1)), 4 + int(label))
    return ClassifiedText((RaggedArray.pack(lines),), labels)


class ToyClassifier(nn.Module):
    """Attends with two rows, each of one score per word, and is punished where they overlap."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(VOCABULARY, 6), nn.Dropout(dropout)
        self.score, self.classifier = nn.Linear(6, 2, bias=False), nn.Linear(12, CLASSES)

    def forward(self, texts: tuple[Tensor, ...], masks: tuple[Tensor, ...]) -> Classified:
        words = self.dropout(self.embedding(texts[0]))
        scores = self.score(words).mT.masked_fill(~masks[0].unsqueeze(1), -torch.inf)
        attention = scores.softmax(-1)  # (B, 2, n)
        logits = self.classifier((attention @ words).flatten(1))
        return Classified(logits, (attention,), 0.1 * attention.prod(1).sum(1))
