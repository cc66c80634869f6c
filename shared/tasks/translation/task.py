"""Binds a translation model to the pipeline: prepare, train, evaluate."""

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
from shared.decoding.ensemble import Ensemble
from shared.tasks.networks import ExampleNetworks, ModelConfigT, full_batch_size, ready
from shared.tasks.translation.corpus import Batch, ParallelText, PreparedText, prepare_parallel
from shared.tasks.translation.evaluation import evaluate_translation, signatures
from shared.tasks.translation.settings import ParallelCorpusConfig, TranslationRun
from shared.tasks.translation.training_operations import training_operations
from shared.training.checkpoints import load_checkpoint

if TYPE_CHECKING:
    from shared.tasks.translation.module import TranslationModule


@dataclass(frozen=True)
class Translation(ExampleNetworks[ModelConfigT, TranslationRun, PreparedText]):
    """A replication whose model translates.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: from that section and the two vocabulary sizes to a model that can be called as
            ``model(source, source_mask, target) -> (logits, attention)``, has ``start(source, source_mask)`` and is
            an :class:`shared.decoding.protocol.IncrementalDecoder`.
    """

    kind: ClassVar[str] = "translation"

    def prepare(self, corpus: ParallelCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode."""
        return prepare_parallel(corpus, dataset, out)

    def evaluate(
        self, config: TranslationRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Translate and score the test splits with one trained seed, or with the ensemble of several."""
        text = self._open(config, prepared)
        models = self._trained(config, text, trained)
        cost = self._cost(models[0], config, text, trained) if config.evaluation.operations else {}
        judged = models[0] if len(models) == 1 else Ensemble(models)
        return evaluate_translation(ready(judged), text, config, out) | cost

    def descriptions(self, config: TranslationRun, prepared: Path) -> Mapping[str, Any]:
        """Signatures and the token's name."""
        return {
            "signatures": signatures(config.evaluation),
            "token": self._open(config, prepared).target.unit,
        }

    def _cost(
        self, model: nn.Module, config: TranslationRun, text: PreparedText, trained: Sequence[Path]
    ) -> dict[str, float]:
        """What training has cost, of an ensemble all its members."""
        train, order = self._training_order(config, text, config.seeds[0])
        updates = [load_checkpoint(folder / "checkpoints" / "last.ckpt")["global_step"] for folder in trained]
        return training_operations(model, train, order(start=0), updates=updates, accumulate=config.training.accumulate)

    def _open(self, config: TranslationRun, prepared: Path) -> PreparedText:
        return PreparedText.load(prepared)

    def _sizes(self, config: TranslationRun, text: PreparedText) -> tuple[int, int]:
        return len(text.source), len(text.target)

    def _training_split(self, config: TranslationRun, text: PreparedText) -> ParallelText:
        return text.split("train").up_to(config.training.max_words or config.corpus.max_words)

    def _lengths(self, split: ParallelText) -> tuple[NDArray[np.integer], ...]:
        return split.target.lengths + 1, split.source.lengths + 1  # each with its end symbol

    def _module(self, model: nn.Module, config: TranslationRun, text: object) -> TranslationModule:
        from shared.tasks.translation.module import TranslationModule

        return TranslationModule(model, config.training)

    def _full_batch(self, config: TranslationRun) -> tuple[Batch, tuple[int, int]]:
        symbols = config.corpus.tokenizer.size
        length = min(config.training.max_words or config.corpus.max_words, 50)
        pairs = full_batch_size(config.training.batch, length)
        lines = RaggedArray.pack(torch.randint(EOS + 1, symbols, (pairs, length)).tolist())
        return ParallelText(lines, lines, lines.lengths).batch(np.arange(pairs)), (symbols, symbols)
