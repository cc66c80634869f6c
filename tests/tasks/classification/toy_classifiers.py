"""A classifier built from settings, and random texts, for tests of the kind "classification"."""

import numpy as np
import torch
from pydantic import Field
from torch import nn

from shared.config import Strict
from shared.data.ragged import RaggedArray
from shared.tasks.classification.corpus import Classified, ClassifiedText

VOCABULARY, CLASSES = 12, 3


class ToyConfig(Strict):
    size: int = Field(ge=1)
    rows: int = Field(default=2, ge=1)
    penalty: float = 0.1
    dropout: float = 0.1


class Toy(nn.Module):
    """Every text, and of pairs both, as the sum of ``rows`` weighted means of its words."""

    def __init__(self, config, vocabulary, classes):
        super().__init__()
        self.embedding, self.penalty = nn.Embedding(vocabulary, config.size), config.penalty
        self.score = nn.Linear(config.size, config.rows)
        self.dropout, self.classifier = nn.Dropout(config.dropout), nn.Linear(config.size, classes)

    def forward(self, texts, masks):
        read = [self.embedding(text) for text in texts]
        scores = (self.score(words).mT for words in read)
        attention = tuple(
            score.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(-1)
            for score, mask in zip(scores, masks, strict=True)
        )
        summed = sum((a @ words).sum(1) for a, words in zip(attention, read, strict=True))
        auxiliary = self.penalty * sum(a.square().sum((1, 2)) for a in attention)
        return Classified(self.classifier(self.dropout(summed)), attention, auxiliary)


def random_texts(count: int, seed: int) -> ClassifiedText:
    """Texts of ordinary words with one marker, 4, 5 or 6, somewhere; which it is is the class."""
    generator = np.random.default_rng(seed)
    lines = [generator.integers(4 + CLASSES, VOCABULARY, generator.integers(2, 7)).tolist() for _ in range(count)]
    labels = generator.integers(0, CLASSES, count)
    for line, label in zip(lines, labels, strict=True):
        line.insert(int(generator.integers(len(line) + 1)), 4 + int(label))
    return ClassifiedText((RaggedArray.pack(lines),), labels)
