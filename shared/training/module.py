"""What all Lightning modules here have in common: optimiser, clipping, what is logged, means over validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import lightning
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from shared.training.config import TrainingConfig
from shared.training.optimizers import build_optimizer


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
        updates: made so far.
        logged: the last value of each quantity, by its name.
        continues: whether each batch of training continues the one before, so that it has to be read after that one.
    """

    continues: ClassVar[bool] = False

    def __init__(self, model: nn.Module, config: TrainingConfig, monitor: str = "loss") -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.monitor = f"valid_{monitor}"
        self.updates = 0
        self.logged: dict[str, Tensor] = {}
        self._valid: list[tuple[Mapping[str, Tensor], int]] = []

    def forward(self, step: Callable[[], Tensor]) -> Tensor:
        """Run a step. Lightning Fabric casts, and DistributedDataParallel means gradients, around this method alone."""
        return step()

    def items(self, batch: Any) -> int:
        """How many items the loss of a training batch is the mean over."""
        return int(batch.tokens)

    def log(self, name: str, value: Any, *_: Any, **__: Any) -> None:
        """Keep a quantity for the learning curve, in float32; it is read from there when it is written."""
        self.logged[name] = torch.as_tensor(value, dtype=torch.float32)

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

    def score(self) -> float:
        """What the last validation says of the weights; the less, the better."""
        value = float(self.logged[self.monitor])
        return math.inf if math.isnan(value) else -value if self.monitor == "valid_bleu" else value

    def configure_optimizers(self) -> Optimizer:
        """The configured optimiser; the training loop sets its learning rate before every update."""
        return build_optimizer(self.model.parameters(), self.config.optimizer)

    def make_update(self, optimizer: Optimizer) -> bool:
        """Scale the gradients so that their L2 norm is at most ``config.clip``, if set, and make the optimiser's step.

        Returns:
            whether all gradients were finite; otherwise nothing has changed.
        """
        norm = clip_gradients(self.model, self.config.clip, self.config.clip_without_embeddings)
        if finite := bool(torch.isfinite(norm)):
            optimizer.step()
        return finite


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
