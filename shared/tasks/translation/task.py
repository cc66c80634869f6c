"""What all papers whose models translate have in common, as :class:`shared.tasks.replication.Replication` says.

A model can be called as ``model(source, source_mask, target) -> (logits, attention)``, has ``start(source,
source_mask)`` and is an :class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings and the sizes
of the two vocabularies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.replication import full_batch_size
from shared.tasks.translation.corpus import ParallelText, PreparedText, TranslationBatch, prepare
from shared.tasks.translation.evaluation import describe, evaluate
from shared.tasks.translation.settings import TranslationRun

__all__ = ["describe", "evaluate", "module", "open_data", "prepare", "random_batch"]


def open_data(config: TranslationRun, prepared: Path) -> PreparedText:
    """What the prepare stage left in a folder."""
    return PreparedText.load(prepared)


def random_batch(config: TranslationRun) -> tuple[TranslationBatch, tuple[int, int]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabularies."""
    symbols = config.corpus.tokenizer.size
    length = min(config.training.max_words or config.corpus.max_words, 50)
    pairs = full_batch_size(config.training.batch, length)
    lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (pairs, length)).tolist())
    return ParallelText(lines, lines, lines.lengths).batch(np.arange(pairs)), (symbols, symbols)


def module(model: nn.Module, config: TranslationRun, text: object) -> nn.Module:
    """The Lightning module."""
    from shared.tasks.translation.module import TranslationModule

    return TranslationModule(model, config.training)
