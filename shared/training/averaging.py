"""The mean of a run's last weights (Vaswani et al. 2017, section 6.1: of the last 5 checkpoints, or 20 if big)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from shared.training.checkpoints import load_checkpoint
from shared.training.config import TrainingConfig


class Averaging(Callback):
    """Keeps the weights at the updates that an average is made of, and makes it.

    The updates are known from the start: every ``every``-th one, counted back from the last. A file is written whole
    or not at all, and a continued run writes those after its start again, with the same bits.

    Args:
        folder: of the checkpoints.
        config: of a run.
    """

    def __init__(self, folder: Path, config: TrainingConfig) -> None:
        average, end = config.average, config.updates
        span = 0 if average is None else average.last * average.every
        self._updates = range(end, end - span, -average.every if average else -1)
        self._folder, self._kept = folder, 0

    def can_continue(self, start: int) -> bool:
        """Whether nothing is missing for a run that continues from update ``start``."""
        before = [self._snapshot(update) for update in self._updates if update <= start]
        return (self._folder / "average.ckpt").exists() or all(path.exists() for path in before)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """Write the weights, if the update just made is one of those."""
        update = trainer.global_step
        if update in self._updates and update != self._kept:  # batches may accumulate
            if trainer.is_global_zero:
                _write({"state_dict": module.state_dict()}, self._snapshot(update))
            self._kept = update

    def finish(self) -> None:
        """Write ``average.ckpt``, if it is wanted, and delete what it was made of.

        Raises:
            ReplicationError: one of these is damaged.
        """
        average, paths = self._folder / "average.ckpt", [self._snapshot(update) for update in self._updates]
        if paths and not average.exists():
            _write({"state_dict": mean_weights(paths)}, average)
        for path in paths:
            path.unlink(missing_ok=True)

    def _snapshot(self, update: int) -> Path:
        return self._folder / f"update{update}.ckpt"


def mean_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' floating-point tensors, computed in float64 and returned in their own types; other
    tensors are those of the first checkpoint.

    Raises:
        ReplicationError: a checkpoint is missing or damaged.
    """
    first: dict[str, Tensor] = load_checkpoint(paths[0])["state_dict"]
    numbers = {name: weight for name, weight in first.items() if weight.is_floating_point()}
    sums = {name: weight.to(torch.float64, copy=True) for name, weight in numbers.items()}  # some share their memory
    for path in paths[1:]:
        state = load_checkpoint(path)["state_dict"]
        for name, total in sums.items():
            total += state[name]
    return first | {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}


def _write(checkpoint: dict[str, Any], path: Path) -> None:
    partial = path.with_suffix(".partial")
    torch.save(checkpoint, partial)
    partial.replace(path)
