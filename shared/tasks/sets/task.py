"""What all papers whose models read sets of vectors have in common.

It is what :class:`shared.tasks.replication.Replication` calls a task. A model is called as ``model(elements, mask)``,
(B, n, X) and (B, n), and returns k outputs of O numbers each, (B, k, O). It is built of its settings, X, and k and O.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from shared.tasks.replication import full_batch_size
from shared.tasks.sets.corpus import PreparedSets, SetBatch, prepare
from shared.tasks.sets.evaluation import describe, evaluate
from shared.tasks.sets.settings import SetRun

__all__ = ["describe", "evaluate", "module", "open_data", "prepare", "random_batch"]


def open_data(config: SetRun, prepared: Path) -> PreparedSets:
    """What the prepare stage left in a folder."""
    return PreparedSets.load(config.corpus, prepared)


def random_batch(config: SetRun) -> tuple[SetBatch, tuple[int, tuple[int, int]]]:
    """A batch of random sets as large as in training, and the other arguments of models."""
    corpus, (_, largest) = config.corpus, config.corpus.sizes
    count = full_batch_size(config.training.batch, largest)
    elements, mask = torch.rand(count, largest, corpus.numbers), torch.ones(count, largest, dtype=torch.bool)
    return SetBatch(elements, mask, torch.ones(count, 1)), (corpus.numbers, corpus.outputs)


def module(model: nn.Module, config: SetRun, data: object) -> nn.Module:
    """The Lightning module."""
    from shared.tasks.sets.module import SetModule

    return SetModule(model, config.training, config.corpus)
