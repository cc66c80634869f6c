"""How models that say in words what an image shows are trained: their loss and validation.

A model can be called as ``model(features, captions, regions)``, returns a
:class:`shared.tasks.captioning.corpus.Captioned`, has ``start(features)`` and is an
:class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings, the size of the vocabulary and the
grid of the annotations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.constraints import Constraints
from shared.decoding.sampling import greedy_search
from shared.metrics.captioning import bleu_statistics, require_scorers
from shared.metrics.translation import corpus_bleu
from shared.tasks.batches import full_batch_size
from shared.tasks.captioning.corpus import CaptionBatch, ImageBatch, PreparedCaptions
from shared.tasks.captioning.settings import CaptioningRun, CaptioningTraining
from shared.training.module import TrainingModule
from shared.vision.features import Grid
from shared.vision.settings import LAYERS


class CaptioningModule(TrainingModule):
    """Teacher-forced training of ``model(features, captions, regions) ->`` :class:`.corpus.Captioned`.

    Logs ``train_loss`` and ``valid_loss`` (nats per symbol of the captions; both without the auxiliary term),
    ``train_auxiliary`` (that term, per symbol, where there is one) and ``valid_bleu`` (corpus BLEU-4 of greedy
    captions, 0 to 100, words as they stand), which decides: Xu et al. (2015, section 4.3) stop on BLEU, since late in
    training likelihood no longer goes with it.

    Args:
        model: also an :class:`shared.decoding.protocol.IncrementalDecoder` whose ``start`` takes features (B, L, D).
        config: of the run.
        decode: from the symbols of captions, without the end symbol, to their texts.
        longest: symbols, the end symbol included, after which a greedy caption is cut.
    """

    config: CaptioningTraining

    def __init__(
        self, model: nn.Module, config: CaptioningTraining, decode: Callable[[list[list[int]]], list[str]], longest: int
    ) -> None:
        super().__init__(model, config, config.monitor)
        self._decode, self._longest = decode, longest
        self._statistics: list[Any] = []  # of BLEU, summed over each batch of validation images

    def items(self, batch: CaptionBatch) -> int:
        """Labels, or captions."""
        return batch.tokens if self.config.loss_per == "label" else len(batch.captions)

    def training_step(self, batch: CaptionBatch, batch_idx: int) -> Tensor:
        """Loss of one batch, the scalar that is optimised: per symbol, or the mean of the captions, as configured."""
        out = self.model(batch.features, batch.captions, batch.regions)
        loss: Tensor = out.nats.float().sum()
        captions = len(batch.captions)
        self.log("train_loss", loss.detach() / batch.tokens, batch_size=captions)
        if out.auxiliary is not None:
            auxiliary = out.auxiliary.float().sum()
            self.log("train_auxiliary", auxiliary.detach() / batch.tokens, batch_size=captions)
            loss = loss + auxiliary
        return loss / (batch.tokens if self.config.loss_per == "label" else captions)

    def validation_step(self, batch: CaptionBatch | ImageBatch, batch_idx: int) -> None:
        """Collect the summed loss of a batch of captions, or how well the captions made of a batch of images do."""
        if isinstance(batch, ImageBatch):
            texts = self._decode(self._greedy(batch.features))
            self._statistics.append(bleu_statistics(texts, batch.references).sum(0))
            return
        nats = self.model(batch.features, batch.captions, batch.regions).nats
        self.collect({"loss": nats.double().sum()}, batch.tokens)

    def on_validation_epoch_end(self) -> None:
        """Log the mean loss of the split and the BLEU of all its images."""
        super().on_validation_epoch_end()
        self.log("valid_bleu", float(corpus_bleu(np.sum(self._statistics, axis=0), smooth=False)))
        self._statistics.clear()

    @torch.no_grad()
    def _greedy(self, features: Tensor) -> list[list[int]]:
        """The most probable symbols of every image, (B, L, D) of them."""
        model: Any = self.model
        return greedy_search(model, model.start(features), limits(features, self._longest)).best()


def limits(features: Tensor, longest: int) -> Constraints:
    """What captions of pictures (B, L, D) are searched under: at most ``longest`` symbols, the end symbol included."""
    none = torch.zeros(len(features), dtype=torch.long, device=features.device)
    return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=none, maximum=none + longest)


def module(model: nn.Module, config: CaptioningRun, data: PreparedCaptions | None) -> nn.Module:
    """The module that is trained, if what will judge its model, such as Java, is there."""
    if data is None:
        return CaptioningModule(model, config.training, decode=lambda captions: [], longest=1)
    require_scorers(config.evaluation.metrics, config.evaluation.tokenisation)
    longest = int(data.split("train").lengths[0].max())
    return CaptioningModule(model, config.training, data.tokenizer.decode, longest)


def random_batch(config: CaptioningRun) -> tuple[CaptionBatch, tuple[int, Grid]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabulary and of the annotations."""
    encoder, symbols, length = config.corpus.encoder, config.corpus.tokenizer.size, (config.corpus.max_words or 20) + 1
    layer = LAYERS[encoder.name][encoder.layer]
    side = encoder.side // layer.stride // encoder.pool
    count, places = full_batch_size(config.training.batch, length), side * side
    captions = torch.randint(EOS + 1, symbols, (count, length))
    captions[:, -1] = EOS
    regions = torch.full((count, length, places), 1 / places)  # for models that are told where to look
    batch = CaptionBatch(torch.rand(count, places, layer.size), captions, regions)
    return batch, (symbols, Grid(rows=side, columns=side, size=layer.size))
