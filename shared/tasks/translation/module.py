"""The Lightning module of translation models: their loss, and nothing of the model itself."""

from __future__ import annotations

from torch import Tensor

from shared.tasks.translation.corpus import TranslationBatch
from shared.tasks.translation.settings import TranslationTraining
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
