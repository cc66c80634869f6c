"""What all papers whose models say in words what an image shows have in common.

Its functions are those that :class:`shared.tasks.replication.Replication` asks of a kind. A model can be called as
``model(features, captions, regions)``, returns a :class:`shared.tasks.captioning.corpus.Captioned`, has
``start(features)`` and is an :class:`shared.decoding.protocol.IncrementalDecoder`. It is built of its settings, the
size of the vocabulary and the grid of the annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from shared.data.fetch import fetch
from shared.data.tokenizers import EOS
from shared.metrics.captioning import CaptionScorer, require_scorers
from shared.tasks.captioning.corpus import CaptionBatch, PreparedCaptions
from shared.tasks.captioning.evaluation import evaluate_captioning
from shared.tasks.captioning.preparation import encode_images, prepare_captions
from shared.tasks.captioning.settings import CaptionCorpusConfig, CaptioningRun
from shared.tasks.replication import Replication, full_batch_size
from shared.vision.features import Grid
from shared.vision.settings import LAYERS, EncoderConfig

if TYPE_CHECKING:
    from shared.tasks.captioning.module import CaptioningModule

prepare = prepare_captions


def features(corpus: CaptionCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
    """What the encoder makes of every picture."""
    torch.set_num_threads(1)
    return encode_images(corpus, dataset, out)


def open_data(config: CaptioningRun, prepared: Path) -> PreparedCaptions:
    """What the prepare stage left in a folder."""
    return PreparedCaptions.load(prepared)


def random_batch(config: CaptioningRun) -> tuple[CaptionBatch, tuple[int, Grid]]:
    """A batch of random symbols as large as in training, and the sizes of the vocabulary and of the annotations."""
    symbols, grid = config.corpus.tokenizer.size, _grid(config.corpus.encoder)
    places, length = grid.rows * grid.columns, (config.corpus.max_words or 20) + 1
    count = full_batch_size(config.training.batch, length)
    captions = torch.randint(EOS + 1, symbols, (count, length))
    captions[:, -1] = EOS
    batch = CaptionBatch(
        features=torch.rand(count, places, grid.size),
        captions=captions,
        regions=torch.full((count, length, places), 1 / places),  # for models that are told where to look
    )
    return batch, (symbols, grid)


def _grid(encoder: EncoderConfig) -> Grid:
    """What an encoder gives, without its weights."""
    layer = LAYERS[encoder.name][encoder.layer]
    side = encoder.side // layer.stride // encoder.pool
    return Grid(rows=side, columns=side, size=layer.size)


def module(model: nn.Module, config: CaptioningRun, text: PreparedCaptions | None) -> CaptioningModule:
    """The Lightning module, if what will judge its model, such as Java, is there."""
    from shared.tasks.captioning.module import CaptioningModule

    if text is None:
        return CaptioningModule(model, config.training, decode=lambda captions: [], longest=1)
    require_scorers(config.evaluation.metrics, config.evaluation.tokenisation)
    longest = int(text.split("train").lengths[0].max())
    return CaptioningModule(model, config.training, text.tokenizer.decode, longest)


def evaluate(
    replication: Replication, config: CaptioningRun, text: PreparedCaptions, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Caption the test splits with one trained seed; there are no ensembles."""
    fetch(config.corpus.dataset)  # at once if it is there; figures keep some of its images
    (model,) = replication.trained_models(config, text, trained)
    return evaluate_captioning(model, text, config, out)


def describe(config: CaptioningRun) -> Mapping[str, Any]:
    """Signatures and the token's name."""
    judging = config.evaluation
    with CaptionScorer(judging.metrics, tokenisation=judging.tokenisation) as scorer:
        return {"signatures": scorer.signatures(), "token": config.corpus.tokenizer.unit}
