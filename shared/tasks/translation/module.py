"""How models that translate are trained.

A model can be called as ``model(source, source_mask, target) -> (logits, attention)``, has ``start(source,
source_mask)`` and is an :class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings and the sizes
of the two vocabularies.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.batches import full_batch_size
from shared.tasks.translation.corpus import ParallelText, TranslationBatch
from shared.tasks.translation.settings import TranslationRun, TranslationTraining
from shared.training.loss import smoothed_loss, token_nll
from shared.training.module import TrainingModule


class TranslationModule(TrainingModule):
    """Teacher-forced training of ``model(source, source_mask, target) -> (logits, attention)``.

    Logs ``train_loss`` (nats per label, as optimised) and ``valid_loss`` (nats per label, without smoothing).
    """

    config: TranslationTraining

    def items(self, batch: TranslationBatch) -> int:
        """Labels, or sentences."""
        return batch.tokens if self.config.loss_per == "label" else len(batch.labels)

    def training_step(self, batch: TranslationBatch, batch_idx: int) -> Tensor:
        """Mean loss of one batch, per label or per sentence as configured; what is logged is per label."""
        logits, _ = self.model(batch.source, batch.source_mask, batch.target)
        loss = smoothed_loss(logits, batch.labels, self.config.label_smoothing, self.config.smoothing_over)
        self.log("train_loss", loss.detach(), batch_size=len(batch.source))
        return loss if self.config.loss_per == "label" else loss * (batch.tokens / len(batch.labels))

    def validation_step(self, batch: TranslationBatch, batch_idx: int) -> None:
        """Collect the batch's summed loss."""
        logits, _ = self.model(batch.source, batch.source_mask, batch.target)
        self.collect({"loss": token_nll(logits, batch.labels).double().sum()}, batch.tokens)


def module(model: nn.Module, config: TranslationRun, text: object) -> nn.Module:
    """The module that is trained."""
    return TranslationModule(model, config.training)


def random_batch(config: TranslationRun) -> tuple[TranslationBatch, tuple[int, int]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabularies."""
    symbols = config.corpus.tokenizer.size
    length = min(config.training.max_words or config.corpus.max_words, 50)
    pairs = full_batch_size(config.training.batch, length)
    lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (pairs, length)).tolist())
    return ParallelText(lines, lines, lines.lengths).batch(np.arange(pairs)), (symbols, symbols)
