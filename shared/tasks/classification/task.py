"""What all papers that classify texts, or pairs of texts, have in common.

It is what :class:`shared.tasks.replication.Replication` calls a task. A model can be called as ``model(texts, masks)``
and returns a :class:`shared.tasks.classification.corpus.Classified`. It is built of its settings and the sizes of the
vocabulary and of the set of classes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.classification.corpus import ClassifiedBatch, ClassifiedText, PreparedClassification, prepare
from shared.tasks.classification.evaluation import describe, evaluate
from shared.tasks.classification.settings import ClassificationRun
from shared.tasks.replication import full_batch_size

__all__ = ["describe", "evaluate", "module", "open_data", "prepare", "random_batch"]


def open_data(config: ClassificationRun, prepared: Path) -> PreparedClassification:
    """What the prepare stage left in a folder."""
    return PreparedClassification.load(prepared)


def random_batch(config: ClassificationRun) -> tuple[ClassifiedBatch, tuple[int, int]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabulary and of the set of classes."""
    corpus = config.corpus
    symbols, classes = corpus.tokenizer.size, len(corpus.classes or "ab")  # only the data knows others
    length = corpus.max_tokens or 50
    count = full_batch_size(config.training.batch, length)
    lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (count, length)).tolist())
    text = ClassifiedText(tuple(lines for _ in corpus.texts), np.arange(count) % classes)
    return text.batch(np.arange(count)), (symbols, classes)


def module(model: nn.Module, config: ClassificationRun, data: object) -> nn.Module:
    """The Lightning module."""
    from shared.tasks.classification.module import ClassificationModule

    return ClassificationModule(model, config.training)
