"""The Lightning module of translation models: loss, metrics, optimiser, and nothing of the model itself."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch import Tensor, nn

from shared.data.parallel import Batch
from shared.errors import ReplicationError
from shared.training.config import TrainingConfig
from shared.training.loss import smoothed_loss, token_nll
from shared.training.schedules import optimizer_bundle


class TranslationModule(lightning.LightningModule):
    """Teacher-forced training of ``model(source, source_mask, target) -> (logits, attention)``.

    Logs ``train_loss`` (nats per label, as optimised) and ``valid_loss`` (nats per label, without smoothing).
    """

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self._valid: list[tuple[Tensor, int]] = []

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean loss of one batch, per label or per sentence as configured; what is logged is per label."""
        logits, _ = self.model(batch.source, batch.source_mask, batch.target)
        loss = smoothed_loss(logits, batch.labels, self.config.label_smoothing, self.config.smoothing_over)
        self.log("train_loss", loss.detach(), batch_size=len(batch.source))
        return loss if self.config.loss_per == "label" else loss * (batch.label_tokens / len(batch.labels))

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Collect the batch's summed loss, so that the mean is over labels and not over batches."""
        logits, _ = self.model(batch.source, batch.source_mask, batch.target)
        self._valid.append((token_nll(logits, batch.labels).double().sum(), batch.label_tokens))

    def on_validation_epoch_end(self) -> None:
        """Log the mean over all labels of the validation split."""
        total, tokens = zip(*self._valid, strict=True)
        self._valid.clear()
        self.log("valid_loss", torch.stack(total).sum().float() / sum(tokens))

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Scale gradients so that their L2 norm is at most ``config.clip``, if set; stop where it is not finite.

        Raises:
            ReplicationError: before the bad gradient has touched a weight.
        """
        norm = clip_gradients(self.model, self.config.clip, self.config.clip_without_embeddings)
        if not torch.isfinite(norm):
            raise ReplicationError(
                f"the gradient is not finite at update {self.global_step + 1}; lower the learning rate, or use "
                "precision 32-true (the last checkpoint is from before it)."
            )

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Lightning does not look into dataclasses that are frozen."""
        return batch.to(device)

    def configure_optimizers(self) -> Any:
        """The configured optimiser and schedule."""
        return optimizer_bundle(
            self.model.parameters(), self.config.optimizer, self.config.schedule, self.config.updates
        )


def clip_gradients(model: nn.Module, most: float | None, without_embeddings: bool) -> Tensor:
    """Scale all gradients down by the factor that brings the norm to ``most``, if set; returns the norm before.

    ``without_embeddings``: the norm is that of all other weights' gradients, as in the code of Luong et al. (2015).
    """
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding) and without_embeddings}
    normed = [p.grad for p in model.parameters() if p.grad is not None and id(p) not in embeddings]
    norm = nn.utils.get_total_norm(normed)
    if most is not None:
        nn.utils.clip_grads_with_norm_(model.parameters(), most, norm)
    return norm
