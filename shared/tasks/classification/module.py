"""The Lightning module of classifiers of texts: their loss, and nothing of the model itself."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from shared.tasks.classification.corpus import ClassifiedBatch
from shared.tasks.classification.settings import ClassificationTraining
from shared.training.loss import smoothed_loss
from shared.training.module import TrainingModule


class ClassificationModule(TrainingModule):
    """Training of ``model(texts, masks) ->`` :class:`shared.tasks.classification.corpus.Classified`.

    Logs ``train_loss`` (nats per text, as optimised), ``train_auxiliary`` (its part that is not cross-entropy, where
    there is one), ``valid_loss`` (cross-entropy alone, nats per text, without smoothing) and ``valid_error`` (share of
    the texts classified wrongly), which decides by default: Lin et al. (2017) take the weights of the best development
    accuracy.
    """

    config: ClassificationTraining

    def __init__(self, model: nn.Module, config: ClassificationTraining) -> None:
        super().__init__(model, config, config.monitor)

    def items(self, batch: ClassifiedBatch) -> int:
        """Texts, of which two may be one."""
        return len(batch.labels)

    def training_step(self, batch: ClassifiedBatch, batch_idx: int) -> Tensor:
        """Mean cross-entropy of one batch plus its mean auxiliary term, the scalar that is optimised."""
        out, texts = self.model(batch.texts, batch.masks), len(batch.labels)
        loss = smoothed_loss(
            out.logits, batch.labels, self.config.label_smoothing, self.config.smoothing_over, padding=None
        )
        auxiliary = None if out.auxiliary is None else out.auxiliary.float().mean()
        if auxiliary is not None:
            loss = loss + auxiliary
        self.log("train_loss", loss.detach(), batch_size=texts)
        if auxiliary is not None:
            self.log("train_auxiliary", auxiliary.detach(), batch_size=texts)
        return loss

    def validation_step(self, batch: ClassifiedBatch, batch_idx: int) -> None:
        """Collect the batch's summed cross-entropy and number of errors."""
        logits = self.model(batch.texts, batch.masks).logits
        loss = functional.cross_entropy(logits.float(), batch.labels, reduction="none").double().sum()
        self.collect({"loss": loss, "error": (logits.argmax(-1) != batch.labels).sum()}, len(batch.labels))
