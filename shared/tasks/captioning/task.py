"""What all papers whose models say in words what an image shows have in common.

Its functions are those that :class:`shared.tasks.replication.Replication` asks of a kind. A model can be called as
``model(features, captions, regions)``, returns a :class:`shared.tasks.captioning.corpus.Captioned`, has
``start(features)`` and is an :class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings, the
size of the vocabulary and the grid of the annotations.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from shared.data.tokenizers import EOS
from shared.metrics.captioning import require_scorers
from shared.tasks.captioning.corpus import CaptionBatch, PreparedCaptions
from shared.tasks.captioning.evaluation import describe, evaluate
from shared.tasks.captioning.preparation import features, prepare
from shared.tasks.captioning.settings import CaptioningRun
from shared.tasks.replication import full_batch_size
from shared.vision.features import Grid
from shared.vision.settings import LAYERS

__all__ = ["describe", "evaluate", "features", "module", "open_data", "prepare", "random_batch"]


def open_data(config: CaptioningRun, prepared: Path) -> PreparedCaptions:
    """What the prepare stage left in a folder."""
    return PreparedCaptions.load(prepared)


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


def module(model: nn.Module, config: CaptioningRun, data: PreparedCaptions | None) -> nn.Module:
    """The Lightning module, if what will judge its model, such as Java, is there."""
    from shared.tasks.captioning.module import CaptioningModule

    if data is None:
        return CaptioningModule(model, config.training, decode=lambda captions: [], longest=1)
    require_scorers(config.evaluation.metrics, config.evaluation.tokenisation)
    longest = int(data.split("train").lengths[0].max())
    return CaptioningModule(model, config.training, data.tokenizer.decode, longest)
