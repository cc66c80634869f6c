"""How models that predict symbols of separate sequences are trained.

A model is a :class:`shared.decoding.protocol.SequenceModel`; it is built of its settings, the size of the vocabulary
and whether symbols are predicted from those before them, or else from all others.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from shared.decoding.protocol import SequenceModel
from shared.tasks.batches import full_batch_size
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sequences.settings import SequenceRun, SequenceTraining
from shared.training.module import TrainingModule


class SequenceModule(TrainingModule):
    """Training of a :class:`shared.decoding.protocol.SequenceModel`, which is told of every update before it.

    Logs ``train_loss`` and ``valid_loss``, nats per target that counts, and if ``counts_hits`` also ``valid_error``,
    the share of these targets that are not the most probable symbol. The model's output layer sees no other.
    """

    def __init__(self, model: nn.Module, config: SequenceTraining, *, counts_hits: bool) -> None:
        super().__init__(model, config, config.monitor)
        self._counts_hits = counts_hits
        self._told: int | None = None  # of which update; batches may accumulate

    def training_step(self, batch: SequenceBatch, batch_idx: int) -> Tensor:
        """Mean loss of one batch."""
        model = cast(SequenceModel, self.model)
        if self._told != self.updates:
            self._told = self.updates
            model.at_update(self._told)
        h = model(batch.inputs, batch.mask)
        loss = model.output(h[batch.scored], batch.targets[batch.scored]).mean()
        self.log("train_loss", loss.detach(), batch_size=len(batch.inputs))
        return loss

    def validation_step(self, batch: SequenceBatch, batch_idx: int) -> None:
        """Collect what is summed over the targets of a batch."""
        model = cast(SequenceModel, self.model)
        h, targets = model(batch.inputs, batch.mask)[batch.scored], batch.targets[batch.scored]
        sums = {"loss": model.output(h, targets).double().sum()}
        if self._counts_hits:
            sums["error"] = (model.output.log_probs(h).argmax(-1) != targets).sum()
        self.collect(sums, batch.tokens)


def module(model: nn.Module, config: SequenceRun, data: object) -> nn.Module:
    """The module that is trained."""
    return SequenceModule(model, config.training, counts_hits=config.corpus.counts_hits)


MASKED_IN = 7
"""About one in so many letters is predicted where letters are masked (15 %)."""


def random_batch(config: SequenceRun) -> tuple[SequenceBatch, tuple[int, bool]]:
    """A batch of random symbols as large as in training, and the other arguments of models."""
    symbols, length, causal = config.corpus.symbols, config.corpus.length, config.corpus.causal
    count = full_batch_size(config.training.batch, length)
    read = torch.randint(symbols - 1, (count, length + 1))  # the last symbol may be one that only starts
    scored = (torch.arange(length) % (1 if causal else MASKED_IN) == 0).expand(count, -1)
    return SequenceBatch(read[:, :-1], read[:, 1:], scored), (symbols, causal)
