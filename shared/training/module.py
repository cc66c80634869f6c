"""What all Lightning modules here have in common: optimiser, clipping, means over the validation split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import lightning
import torch
from torch import Tensor, nn

from shared.errors import ReplicationError
from shared.training.config import TrainingConfig
from shared.training.protocol import TrainingBatch
from shared.training.schedules import optimizer_bundle


class TrainingModule(lightning.LightningModule):
    """Base of the modules that :func:`shared.training.run.train_run` trains; a subclass defines the two steps.

    The learning curve contains all that a step logs as ``train_…``, and the means of the sums given to ``collect``.

    Args:
        model: what is trained.
        config: of the run.
        monitor: the mean over validation that decides which weights are best and when patience ends; of equals the
            earliest is best. The most of ``bleu`` is best, and the least of anything else.

    Attributes:
        monitor: that mean, as it is logged.
        mode: whether the least or the most of it is best.
        diverged: whether a gradient was not finite, where ``config.may_diverge``; then training is to end.
        continues: whether each batch of training continues the one before, so that it has to be read after that one.
    """

    continues: ClassVar[bool] = False

    def __init__(self, model: nn.Module, config: TrainingConfig, monitor: str = "loss") -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.monitor = f"valid_{monitor}"
        self.mode: Literal["min", "max"] = "max" if monitor == "bleu" else "min"
        self.diverged = False
        self._valid: list[tuple[Mapping[str, Tensor], int]] = []

    def collect(self, sums: Mapping[str, Tensor], count: int) -> None:
        """Keep sums over a validation batch of so many items, so that the mean is over items and not over batches."""
        self._valid.append((sums, count))

    def on_validation_epoch_end(self) -> None:
        """Log the mean of each quantity over all items of the validation split."""
        sums, counts = zip(*self._valid, strict=True)
        self._valid.clear()
        for name in sums[0]:
            total = torch.stack([batch[name] for batch in sums]).sum().float()
            self.log(f"valid_{name}", total / sum(counts))

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Scale gradients so that their L2 norm is at most ``config.clip``, if set; stop where it is not finite.

        A gradient that is not finite changes neither the weights nor the state of the optimiser: all gradients are then
        set to None, and the optimiser skips weights without a gradient.

        Raises:
            ReplicationError: a gradient is not finite, and ``config.may_diverge`` is not set.
        """
        norm = clip_gradients(self.model, self.config.clip, self.config.clip_without_embeddings)
        if torch.isfinite(norm):
            return
        self.model.zero_grad(set_to_none=True)
        self.diverged = True
        if not self.config.may_diverge:
            raise ReplicationError(
                f"the gradient is not finite at update {self.global_step + 1}; lower the learning rate, or use "
                "precision 32-true (the last checkpoint is from before it)."
            )

    def transfer_batch_to_device(
        self, batch: TrainingBatch, device: torch.device, dataloader_idx: int
    ) -> TrainingBatch:
        """Move the batch here, because Lightning does not move frozen dataclasses."""
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
