"""What all papers whose models translate have in common: a :class:`shared.tasks.replication.Task`.

A model can be called as ``model(source, source_mask, target) -> (logits, attention)``, has ``start(source,
source_mask)`` and is an :class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings and the sizes
of the two vocabularies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.decoding.ensemble import Ensemble
from shared.tasks.batches import training_order
from shared.tasks.replication import Replication, full_batch_size
from shared.tasks.translation.corpus import ParallelText, PreparedText, TranslationBatch, prepare_parallel
from shared.tasks.translation.evaluation import evaluate_translation, signatures, training_operations
from shared.tasks.translation.settings import TranslationRun
from shared.training.checkpoints import load_checkpoint

if TYPE_CHECKING:
    from shared.tasks.translation.module import TranslationModule

prepare = prepare_parallel


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


def module(model: nn.Module, config: TranslationRun, text: object) -> TranslationModule:
    """The Lightning module."""
    from shared.tasks.translation.module import TranslationModule

    return TranslationModule(model, config.training)


def evaluate(
    replication: Replication, config: TranslationRun, text: PreparedText, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Translate and score the test splits with one trained seed, or with the ensemble of several."""
    models = replication.trained_models(config, text, trained)
    model = models[0] if len(models) == 1 else Ensemble(models).eval()
    metrics = evaluate_translation(model, text, config, out)
    if config.evaluation.operations:  # of an ensemble those of all its members
        train = text.training_split(config.training)
        order = training_order(train, config.training.batch, config.seeds[0])(start=0)
        updates = [load_checkpoint(folder / "checkpoints" / "last.ckpt")["global_step"] for folder in trained]
        metrics |= training_operations(
            models[0].cpu(), train, order, updates=updates, accumulate=config.training.accumulate
        )
    return metrics


def describe(config: TranslationRun) -> Mapping[str, Any]:
    """Signatures and the token's name."""
    return {"signatures": signatures(config.evaluation), "token": config.corpus.tokenizer.unit}
