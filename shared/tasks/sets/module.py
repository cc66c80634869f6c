"""How models of sets of vectors are trained, and what their outputs mean.

A model is called as ``model(elements, mask)``, (B, n, X) and (B, n), and returns k outputs of O numbers each,
(B, k, O). It is built of its settings, X, and k and O.

Shape letters: B sets, n elements of the largest, X numbers of an element, k outputs, O numbers of an output.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.tasks.batches import full_batch_size
from shared.tasks.sets.corpus import SetBatch
from shared.tasks.sets.settings import Asked, SetCorpusConfig, SetRun
from shared.training.config import TrainingConfig
from shared.training.module import TrainingModule

LEAST = 1e-3
"""What is added to spreads and rates, so that their logarithms are finite."""


def mixture(outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (B, k, 1 + 2 X) as log-weights (B, k), means (B, k, X) and standard deviations (B, k, X) of Gaussians."""
    size = outputs.size(2) // 2
    weights, means, spreads = outputs.split((1, size, size), dim=2)
    return weights.squeeze(2).log_softmax(1), means, functional.softplus(spreads) + LEAST


def log_density(points: Tensor, log_weights: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    """The log-density (B, n) of points (B, n, X) under mixtures of axis-parallel Gaussians (:func:`mixture`)."""
    deviations = (points.unsqueeze(2) - means.unsqueeze(1)) / scales.unsqueeze(1)  # (B, n, k, X)
    logs = scales.log().sum(2) + points.size(2) * math.log(2 * math.pi) / 2  # (B, k)
    return torch.logsumexp((log_weights - logs).unsqueeze(1) - deviations.square().sum(3) / 2, dim=2)


def losses(asked: Asked, outputs: Tensor, batch: SetBatch) -> Tensor:
    """The loss (B,) of each set, summed over its points where a mixture is asked for.

    The absolute error of a number; -log p of a count under the Poisson distribution, whose rate is a softplus; or of
    points under the mixture.
    """
    outputs = outputs.float()
    if asked == "mixture":
        return -log_density(batch.elements, *mixture(outputs)).masked_fill(~batch.mask, 0).sum(1)
    found, wanted = outputs[:, 0, 0], batch.targets[:, 0]
    if asked == "number":
        return (found - wanted).abs()
    return functional.poisson_nll_loss(rate(outputs), wanted, log_input=False, reduction="none") + torch.lgamma(
        wanted + 1
    )


def rate(outputs: Tensor) -> Tensor:
    """Outputs (B, 1, 1) as rates (B,) of Poisson distributions."""
    return functional.softplus(outputs[:, 0, 0].float()) + LEAST


class SetModule(TrainingModule):
    """Training of ``model(elements, mask) -> outputs (B, k, O)``.

    Logs ``train_loss`` and ``valid_loss``: see :func:`losses`, per set, or per point.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, corpus: SetCorpusConfig) -> None:
        super().__init__(model, config)
        self.asked: Asked = corpus.asked

    def items(self, batch: SetBatch) -> int:
        """Points where a mixture is asked for, else sets."""
        return batch.tokens if self.asked == "mixture" else len(batch.mask)

    def training_step(self, batch: SetBatch, batch_idx: int) -> Tensor:
        """Mean loss of one batch."""
        loss = losses(self.asked, self.model(batch.elements, batch.mask), batch).sum() / self.items(batch)
        self.log("train_loss", loss.detach())
        return loss

    def validation_step(self, batch: SetBatch, batch_idx: int) -> None:
        """Collect the batch's summed loss."""
        summed = losses(self.asked, self.model(batch.elements, batch.mask), batch).double().sum()
        self.collect({"loss": summed}, self.items(batch))


def module(model: nn.Module, config: SetRun, data: object) -> nn.Module:
    """The module that is trained."""
    return SetModule(model, config.training, config.corpus)


def random_batch(config: SetRun) -> tuple[SetBatch, tuple[int, tuple[int, int]]]:
    """A batch of random sets as large as in training, and the other arguments of models."""
    corpus, (_, largest) = config.corpus, config.corpus.sizes
    count = full_batch_size(config.training.batch, largest)
    elements, mask = torch.rand(count, largest, corpus.numbers), torch.ones(count, largest, dtype=torch.bool)
    return SetBatch(elements, mask, torch.ones(count, 1)), (corpus.numbers, corpus.outputs)
