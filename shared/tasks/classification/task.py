"""Binds a classifier of texts to the pipeline: prepare, train, evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS
from shared.tasks.classification.corpus import (
    ClassifiedBatch,
    ClassifiedText,
    PreparedClassification,
    prepare_classified,
)
from shared.tasks.classification.evaluation import evaluate_classification
from shared.tasks.classification.settings import ClassificationRun, ClassifiedCorpusConfig
from shared.tasks.networks import ExampleNetworks, ModelConfigT, full_batch_size, ready

if TYPE_CHECKING:
    from shared.tasks.classification.module import ClassificationModule


@dataclass(frozen=True)
class Classification(ExampleNetworks[ModelConfigT, ClassificationRun, PreparedClassification]):
    """A replication whose model gives texts, or pairs of texts, one of several classes.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: from that section and the sizes of the vocabulary and of the set of classes to a model that can be
            called as ``model(texts, masks)`` and returns a :class:`shared.tasks.classification.protocol.Classified`.
    """

    kind: ClassVar[str] = "classification"

    def prepare(self, corpus: ClassifiedCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode."""
        return prepare_classified(corpus, dataset, out)

    def evaluate(
        self, config: ClassificationRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Classify the test splits with one trained seed; there are no ensembles."""
        text = self._open(config, prepared)
        (model,) = self._trained(config, text, trained)
        return evaluate_classification(ready(model), text, config, out)

    def descriptions(self, config: ClassificationRun, prepared: Path) -> Mapping[str, Any]:
        """What a cross-entropy is per."""
        return {"token": "text"}

    def _open(self, config: ClassificationRun, prepared: Path) -> PreparedClassification:
        return PreparedClassification.load(prepared)

    def _sizes(self, config: ClassificationRun, text: PreparedClassification) -> tuple[int, int]:
        return len(text.tokenizer), len(text.classes)

    def _lengths(self, split: ClassifiedText) -> tuple[NDArray[np.integer], ...]:
        return split.lengths

    def _module(self, model: nn.Module, config: ClassificationRun, text: object) -> ClassificationModule:
        from shared.tasks.classification.module import ClassificationModule

        return ClassificationModule(model, config.training)

    def _full_batch(self, config: ClassificationRun) -> tuple[ClassifiedBatch, tuple[int, int]]:
        corpus = config.corpus
        symbols, classes = corpus.tokenizer.size, len(corpus.classes or "ab")  # only the data knows others
        length = corpus.max_tokens or 50
        count = full_batch_size(config.training.batch, length)
        lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (count, length)).tolist())
        text = ClassifiedText(tuple(lines for _ in corpus.texts), np.arange(count) % classes)
        return text.batch(np.arange(count)), (symbols, classes)
