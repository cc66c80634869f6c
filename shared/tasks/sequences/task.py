"""Binds a model of separate sequences to the pipeline: prepare, train, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shared.config import merge
from shared.decoding.sequence_model import SequenceModel
from shared.errors import ReplicationError
from shared.tasks.networks import ExampleNetworks, ModelConfigT, full_batch_size, ready
from shared.tasks.sequences.batches import PreparedSequences, SequenceBatch, SequenceSplit
from shared.tasks.sequences.corpus import load_prepared, prepare_sequences
from shared.tasks.sequences.evaluation import evaluate_sequences
from shared.tasks.sequences.settings import SequenceCorpusConfig, SequenceRun
from shared.tasks.sequences.sizes import sizes_of

if TYPE_CHECKING:
    from shared.tasks.sequences.module import SequenceModule

MASKED_IN = 7
"""About one in so many letters is predicted where letters are masked (15 %)."""


@dataclass(frozen=True)
class Sequences(ExampleNetworks[ModelConfigT, SequenceRun, PreparedSequences]):
    """A replication whose model predicts symbols of separate sequences from those before them, or from all others.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: returns a :class:`shared.decoding.sequence_model.SequenceModel` from that section, the size of the
            vocabulary and whether the model is causal.
    """

    kind: ClassVar[str] = "sequences"

    def prepare(self, corpus: SequenceCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Encode."""
        return prepare_sequences(corpus, dataset, out)

    def evaluate(
        self, config: SequenceRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Score the test splits with one trained seed, and with its weights in other models; there are no ensembles."""
        text = self._open(config, prepared)
        (model,) = self._trained(config, text, trained)
        swapped = {name: ready(self._swapped(config, text, model, name)) for name in config.evaluation.swapped}
        return evaluate_sequences(ready(model), text, config, out, swapped)

    def descriptions(self, config: SequenceRun, prepared: Path) -> Mapping[str, Any]:
        """What losses are reported per."""
        return {"token": self._open(config, prepared).unit}

    def _swapped(self, config: SequenceRun, text: PreparedSequences, trained: nn.Module, name: str) -> nn.Module:
        """The swapped model ``name`` with the trained weights; the trained model's ``origin`` seeds its random draws.

        Raises:
            ReplicationError: its weights differ from the trained ones in names or shapes.
        """
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(int(cast(SequenceModel, trained).origin))
            model = self.model(_changed(config, config.evaluation.swapped[name]), text)
        if _shapes(model) != _shapes(trained):
            raise ReplicationError(
                f"evaluation.swapped.{name} makes a model whose weights are others than those trained; leave out what "
                "changes them."
            )
        model.load_state_dict(dict(trained.named_parameters()), strict=False)
        cast(SequenceModel, model).at_update(config.training.updates)  # brings it to the same state of training
        return model

    def _open(self, config: SequenceRun, prepared: Path) -> PreparedSequences:
        return load_prepared(config.corpus, prepared)

    def _sizes(self, config: SequenceRun, text: PreparedSequences) -> tuple[int, bool]:
        return text.symbols, config.corpus.causal

    def _lengths(self, split: SequenceSplit) -> tuple[NDArray[np.integer]]:
        return split.lengths

    def _batches(
        self, config: SequenceRun, text: PreparedSequences, seed: int
    ) -> Callable[[int], Iterator[SequenceBatch]]:
        """Batches of training; seed and batch number determine the masks, so a continued run has the same ones."""
        train, order = self._training_order(config, text, seed)
        return lambda start: (
            train.batch(indices, (seed, number)) for number, indices in enumerate(order(start=start), start)
        )

    def _module(self, model: nn.Module, config: SequenceRun, text: object) -> SequenceModule:
        from shared.tasks.sequences.module import CountingSequenceModule, SequenceModule

        kind = CountingSequenceModule if config.corpus.counts_hits else SequenceModule
        return kind(model, config.training)

    def _full_batch(self, config: SequenceRun) -> tuple[SequenceBatch, tuple[int, bool]]:
        symbols, length = sizes_of(config.corpus)
        count, every = full_batch_size(config.training.batch, length), 1 if config.corpus.causal else MASKED_IN
        read = torch.randint(symbols - 1, (count, length + 1))  # the last symbol may be one that only starts
        scored = (torch.arange(length) % every == 0).expand(count, -1)
        return SequenceBatch(read[:, :-1], read[:, 1:], scored), (symbols, config.corpus.causal)


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _changed(config: SequenceRun, changes: Mapping[str, Any]) -> SequenceRun:
    """The same run with ``changes`` merged into its ``model`` section."""
    return config.model_copy(update={"model": merge(config.model, changes)})
