"""Binds a model that captions images to the pipeline: prepare, train, evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shared.data.batching import Indices
from shared.data.fetch import fetch
from shared.data.tokenizers import EOS
from shared.metrics.captioning import CaptionScorer, require_scorers
from shared.tasks.captioning.corpus import CaptionBatch, CaptionedSplit, ImageBatch, PreparedCaptions
from shared.tasks.captioning.evaluation import evaluate_captioning
from shared.tasks.captioning.preparation import encode_images, prepare_captions
from shared.tasks.captioning.settings import CaptionCorpusConfig, CaptioningRun
from shared.tasks.networks import ExampleNetworks, ModelConfigT, full_batch_size, ready
from shared.training.checkpoints import TrainingRecord
from shared.training.progress import Report
from shared.vision.features import Grid
from shared.vision.settings import LAYERS, EncoderConfig

if TYPE_CHECKING:
    from shared.tasks.captioning.module import CaptioningModule

VALIDATED = 100
"""Images captioned together during validation."""


@dataclass(frozen=True)
class Captioning(ExampleNetworks[ModelConfigT, CaptioningRun, PreparedCaptions]):
    """A replication whose model says in words what an image shows.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: from that section, the size of the vocabulary and the grid of the annotations to a model that can
            be called as ``model(features, captions, regions)``, returns a
            :class:`shared.tasks.captioning.protocol.Captioned`, has ``start(features)`` and is an
            :class:`shared.decoding.protocol.IncrementalDecoder`.
    """

    kind: ClassVar[str] = "captioning"

    def features(self, corpus: CaptionCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """What the encoder makes of every picture."""
        torch.set_num_threads(1)
        return encode_images(corpus, dataset, out)

    def prepare(self, corpus: CaptionCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode the captions; the features stage has encoded the images."""
        return prepare_captions(corpus, dataset, out)

    def train(
        self, config: CaptioningRun, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train one seed, if what will judge it, such as Java, is there."""
        require_scorers(config.evaluation.metrics, config.evaluation.tokenisation)
        return super().train(
            config, prepared=prepared, folder=folder, seed=seed, fingerprint=fingerprint, label=label, progress=progress
        )

    def evaluate(
        self, config: CaptioningRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Caption the test splits with one trained seed; there are no ensembles."""
        fetch(config.corpus.dataset)  # at once if it is there; figures keep some of its images
        text = self._open(config, prepared)
        (model,) = self._trained(config, text, trained)
        return evaluate_captioning(ready(model), text, config, out)

    def descriptions(self, config: CaptioningRun, prepared: Path) -> Mapping[str, Any]:
        """Signatures and the token's name."""
        judging = config.evaluation
        with CaptionScorer(judging.metrics, tokenisation=judging.tokenisation) as scorer:
            return {"signatures": scorer.signatures(), "token": self._open(config, prepared).tokenizer.unit}

    def _open(self, config: CaptioningRun, prepared: Path) -> PreparedCaptions:
        return PreparedCaptions.load(prepared)

    def _sizes(self, config: CaptioningRun, text: PreparedCaptions) -> tuple[int, Grid]:
        return len(text.tokenizer), text.grid

    def _lengths(self, split: CaptionedSplit) -> tuple[NDArray[np.integer], ...]:
        return split.lengths

    def _validation(self, config: CaptioningRun, text: PreparedCaptions) -> Sequence[CaptionBatch | ImageBatch]:
        split = text.split("valid")
        return _Batches(split, self._every_batch(split), text.image_batches("valid", VALIDATED))

    def _module(self, model: nn.Module, config: CaptioningRun, text: PreparedCaptions | None) -> CaptioningModule:
        from shared.tasks.captioning.module import CaptioningModule

        if text is None:
            return CaptioningModule(model, config.training, decode=lambda captions: [], longest=1)
        longest = int(text.split("train").lengths[0].max())
        return CaptioningModule(model, config.training, text.tokenizer.decode, longest)

    def _full_batch(self, config: CaptioningRun) -> tuple[CaptionBatch, tuple[int, Grid]]:
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


@dataclass(frozen=True)
class _Batches(Sequence[CaptionBatch | ImageBatch]):
    """A split in batches of captions, each made when it is asked for, as the features of all take gigabytes; and whole
    images."""

    split: CaptionedSplit
    order: Sequence[Indices]
    images: Sequence[ImageBatch]

    def __len__(self) -> int:
        return len(self.order) + len(self.images)

    def __getitem__(self, number: Any) -> Any:
        if number < len(self.order):
            return self.split.batch(self.order[number])
        return self.images[number - len(self.order)]
