"""The Lightning modules of models of separate sequences: their loss, and nothing of the models themselves."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from shared.decoding.protocol import SequenceModel
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sequences.settings import SequenceTraining
from shared.training.module import TrainingModule


class SequenceModule(TrainingModule):
    """Training of a :class:`shared.decoding.protocol.SequenceModel`, which is told of every update before it.

    Logs ``train_loss`` and ``valid_loss``, nats per target that counts. The model's output layer sees no other.
    """

    def __init__(self, model: nn.Module, config: SequenceTraining) -> None:
        super().__init__(model, config, config.monitor)
        self._told: int | None = None  # of which update; batches may accumulate

    def training_step(self, batch: SequenceBatch, batch_idx: int) -> Tensor:
        """Mean loss of one batch."""
        if self._told != self.updates:
            self._told = self.updates
            self._sequence_model.at_update(self._told)
        loss = self._sequence_model.output(*self._predicted(batch)).mean()
        self.log("train_loss", loss.detach(), batch_size=len(batch.inputs))
        return loss

    def validation_step(self, batch: SequenceBatch, batch_idx: int) -> None:
        """Collect what is summed over the targets of a batch."""
        self.collect(self.sums(*self._predicted(batch)), batch.tokens)

    def sums(self, h: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Each quantity, summed over n targets: states (n, D) and symbols (n,)."""
        return {"loss": self._sequence_model.output(h, targets).double().sum()}

    @property
    def _sequence_model(self) -> SequenceModel:
        return cast(SequenceModel, self.model)

    def _predicted(self, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        """Those n targets of a batch that count: their states (n, D) and symbols (n,)."""
        h = self._sequence_model(batch.inputs, batch.mask)
        return h[batch.scored], batch.targets[batch.scored]


class CountingSequenceModule(SequenceModule):
    """Also logs ``valid_error``, the share of the targets that are not the most probable symbol."""

    def sums(self, h: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Each quantity, summed over n targets: states (n, D) and symbols (n,)."""
        best = self._sequence_model.output.log_probs(h).argmax(-1)
        return super().sums(h, targets) | {"error": (best != targets).sum()}
