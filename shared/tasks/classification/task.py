"""What all papers that classify texts, or pairs of texts, have in common: a :class:`shared.tasks.replication.Task`.

A model can be called as ``model(texts, masks)`` and returns a :class:`shared.tasks.classification.corpus.Classified`.
It is built of its settings and the sizes of the vocabulary and of the set of classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.classification.corpus import (
    ClassifiedBatch,
    ClassifiedText,
    PreparedClassification,
    prepare_classified,
)
from shared.tasks.classification.evaluation import evaluate_classification
from shared.tasks.classification.settings import ClassificationRun, ClassificationTraining
from shared.tasks.replication import Replication, full_batch_size, ready
from shared.training.loss import smoothed_loss
from shared.training.module import TrainingModule

prepare = prepare_classified


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

    def loss(self, batch: ClassifiedBatch) -> tuple[Tensor, Tensor | None]:
        """Mean cross-entropy plus auxiliary term of a batch, the scalar that is optimised; and that term alone."""
        out = self.model(batch.texts, batch.masks)
        cross_entropy = smoothed_loss(
            out.logits, batch.labels, self.config.label_smoothing, self.config.smoothing_over, padding=None
        )
        if out.auxiliary is None:
            return cross_entropy, None
        auxiliary = out.auxiliary.float().mean()
        return cross_entropy + auxiliary, auxiliary

    def training_step(self, batch: ClassifiedBatch, batch_idx: int) -> Tensor:
        """Mean loss of one batch."""
        loss, auxiliary = self.loss(batch)
        self.log("train_loss", loss.detach())
        if auxiliary is not None:
            self.log("train_auxiliary", auxiliary.detach())
        return loss

    def validation_step(self, batch: ClassifiedBatch, batch_idx: int) -> None:
        """Collect the batch's summed cross-entropy and number of errors."""
        logits = self.model(batch.texts, batch.masks).logits
        loss = functional.cross_entropy(logits.float(), batch.labels, reduction="none").double().sum()
        self.collect({"loss": loss, "error": (logits.argmax(-1) != batch.labels).sum()}, len(batch.labels))


def open_data(config: ClassificationRun, prepared: Path) -> PreparedClassification:
    """What the prepare stage left in a folder."""
    return PreparedClassification.load(prepared)


def random_batch(config: ClassificationRun) -> tuple[ClassifiedBatch, tuple[int, int]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabulary and of the set of classes."""
    corpus = config.corpus
    symbols, classes = corpus.tokenizer.size, len(corpus.classes or "ab")  # only the data knows others
    length = corpus.max_tokens or 50
    count = full_batch_size(config.training.batch, length)
    lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (count, length)).tolist())
    text = ClassifiedText(tuple(lines for _ in corpus.texts), np.arange(count) % classes)
    return text.batch(np.arange(count)), (symbols, classes)


def module(model: nn.Module, config: ClassificationRun, text: object) -> ClassificationModule:
    """What is trained."""
    return ClassificationModule(model, config.training)


def evaluate(
    replication: Replication, config: ClassificationRun, text: PreparedClassification, trained: Sequence[Path],
    out: Path,
) -> dict[str, float]:  # fmt: skip
    """Classify the test splits with one trained seed; there are no ensembles."""
    (model,) = replication.trained_models(config, text, trained)
    return evaluate_classification(ready(model), text, config, out)


def describe(config: ClassificationRun) -> Mapping[str, Any]:
    """What a cross-entropy is per."""
    return {"token": "text"}
