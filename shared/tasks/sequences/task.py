"""What all papers whose models predict symbols of separate sequences have in common.

It is what :class:`shared.tasks.replication.Replication` calls a task. A model is a
:class:`shared.decoding.protocol.SequenceModel`; it is built of its settings, the size of the vocabulary and whether
symbols are predicted from those before them, or else from all others.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from shared.tasks.replication import full_batch_size
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sequences.corpus import PreparedSequences, prepare
from shared.tasks.sequences.evaluation import describe, evaluate
from shared.tasks.sequences.settings import SequenceRun

__all__ = ["describe", "evaluate", "module", "open_data", "prepare", "random_batch"]
MASKED_IN = 7
"""About one in so many letters is predicted where letters are masked (15 %)."""


def open_data(config: SequenceRun, prepared: Path) -> PreparedSequences:
    """What the prepare stage left in a folder."""
    return PreparedSequences.load(config.corpus, prepared)


def random_batch(config: SequenceRun) -> tuple[SequenceBatch, tuple[int, bool]]:
    """A batch of random symbols as large as in training, and the other arguments of models."""
    symbols, length, causal = config.corpus.symbols, config.corpus.length, config.corpus.causal
    count = full_batch_size(config.training.batch, length)
    read = torch.randint(symbols - 1, (count, length + 1))  # the last symbol may be one that only starts
    scored = (torch.arange(length) % (1 if causal else MASKED_IN) == 0).expand(count, -1)
    return SequenceBatch(read[:, :-1], read[:, 1:], scored), (symbols, causal)


def module(model: nn.Module, config: SequenceRun, data: object) -> nn.Module:
    """The Lightning module."""
    from shared.tasks.sequences.module import SequenceModule

    return SequenceModule(model, config.training, counts_hits=config.corpus.counts_hits)
