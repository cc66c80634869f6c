"""How classifiers of texts, or of pairs of texts, are trained.

A model can be called as ``model(texts, masks)`` and returns a
:class:`shared.tasks.classification.corpus.Classified`. It is built of its settings and the sizes of the vocabulary and
of the set of classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.batches import full_batch_size
from shared.tasks.classification.corpus import ClassifiedBatch, ClassifiedText
from shared.tasks.classification.settings import ClassificationRun, ClassificationTraining
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


def module(model: nn.Module, config: ClassificationRun, data: object) -> nn.Module:
    """The module that is trained."""
    return ClassificationModule(model, config.training)


def random_batch(config: ClassificationRun) -> tuple[ClassifiedBatch, tuple[int, int]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabulary and of the set of classes."""
    corpus = config.corpus
    symbols, classes = corpus.tokenizer.size, len(corpus.classes or "ab")  # only the data knows others
    length = corpus.max_tokens or 50
    count = full_batch_size(config.training.batch, length)
    lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (count, length)).tolist())
    text = ClassifiedText(tuple(lines for _ in corpus.texts), np.arange(count) % classes)
    return text.batch(np.arange(count)), (symbols, classes)
